// peer.js SOCKET[,SOCKET…] take NAME MS | extend NAME TOKEN MS | drop NAME TOKEN | work NAME SECONDS TRACE
//
// Another client of the same lock: the npm package redlock, found through NODE_PATH. As peer.py. The package wants a
// client with evalsha and eval; this one speaks just enough of the protocol for these.
'use strict';
const fs = require('fs');
const net = require('net');
const Redlock = require('redlock');

class Client {
  constructor(path) {
    this.pending = [];
    this.text = '';
    this.socket = net.connect(path);
    this.socket.setEncoding('latin1');
    this.socket.on('error', (error) => this.fail(error));
    this.socket.on('data', (data) => { this.text += data; this.read(); });
  }

  // A server that is dead answers so at once.
  fail(error) {
    this.dead = error;
    this.pending.splice(0).forEach((done) => done(error));
  }

  // Replies of these scripts are short: a number, nil, a status or an error.
  read() {
    for (let end; (end = this.text.indexOf('\r\n')) >= 0;) {
      const line = this.text.slice(0, end);
      let rest = end + 2;
      let value = line.slice(1);
      if (line[0] === '$' && value !== '-1') {
        const size = Number(value);
        if (this.text.length < rest + size + 2) return;
        value = this.text.slice(rest, rest + size);
        rest += size + 2;
      } else if (line[0] === '$' || line[0] === '*') {
        value = null;
      } else if (line[0] === ':') {
        value = Number(value);
      }
      this.text = this.text.slice(rest);
      const done = this.pending.shift();
      line[0] === '-' ? done(new Error(value)) : done(null, value);
    }
  }

  send(words, done) {
    if (this.dead) return process.nextTick(done, this.dead);
    this.pending.push(done);
    this.socket.write(`*${words.length}\r\n` + words.map((w) => `$${Buffer.byteLength(String(w))}\r\n${w}\r\n`).join(''));
  }

  evalsha(hash, args, done) { this.send(['EVALSHA', hash, ...args], done); }
  eval(args, done) { this.send(['EVAL', ...args], done); }
  on() {}
}

const [paths, verb, name, ...rest] = process.argv.slice(2);
const redlock = new Redlock(paths.split(',').map((path) => new Client(path)), { retryCount: 0 });
const known = (token) => new Redlock.Lock(redlock, [name], token, Date.now() + 1000, 1);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function work(seconds, file) {
  const trace = fs.openSync(file, 'a');
  const end = Date.now() + seconds * 1000;
  for (let turn = 0; Date.now() < end; ++turn) {
    const lock = await redlock.lock(name, 20000).catch(() => null);
    if (lock === null) {
      await pause(5 + Math.random() * 20);
      continue;
    }
    const note = (word) => fs.writeSync(trace, `${word} ${process.hrtime.bigint()} node-redlock-${process.pid}-${turn}\n`);
    note('start');
    await pause(Math.random() * 20);
    note('stop');
    await lock.unlock().catch(() => note('robbed'));
  }
}

async function main() {
  if (verb === 'take') console.log((await redlock.lock(name, Number(rest[0]))).value);
  if (verb === 'extend') await known(rest[0]).extend(Number(rest[1]));
  if (verb === 'drop') await known(rest[0]).unlock();
  if (verb === 'work') await work(Number(rest[0]), rest[1]);
}

main().then(() => process.exit(0), () => process.exit(1));
