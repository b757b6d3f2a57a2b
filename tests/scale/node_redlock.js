// node_redlock.js SOCKET NAME SECONDS COMMAND...: the using() of node-redlock, for peers.py. It extends the lease, and the
// signal that it raises when it cannot ends the command.
const { spawn } = require("child_process");
const Redis = require("ioredis");
const { default: Redlock } = require("redlock");

const [socket, name, seconds, ...command] = process.argv.slice(2);
const client = new Redis(socket);
const redlock = new Redlock([client]);
for (const one of [client, redlock]) one.on("error", () => {}); // each failed attempt is one

const run = (signal) =>
  new Promise((resolve) => {
    const child = spawn(command[0], command.slice(1), { stdio: "inherit", signal });
    child.on("error", () => resolve(1));
    child.on("exit", (code) => resolve(code ?? 1));
  });

redlock.using([`node:${name}`], seconds * 1000, { retryCount: -1 }, run).then(
  (code) => process.exit(code),
  (error) => { console.error(error); process.exit(1); },
);
