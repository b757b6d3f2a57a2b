#pragma once

#include "cli/options/table_bits.hpp"

// The options of every command: which server, how to reach it, what to print.
namespace rlock::cli {

inline constexpr OptionRow kConnectionOptions[] = {
    {.id = Opt::url,
     .letter = 'u',
     .name = "url",
     .metavar = "URL",
     .environment = "RLOCK_URL",
     .help = "the server: redis://HOST[:PORT][/DB], rediss:// for TLS, unix:///PATH, local: and "
             "others; give three or more for a quorum",
     .manual =
         "Give several servers by repeating the option, or in one text, separated by white space "
         "or a comma where a scheme follows. Two servers are refused, since they form no majority: "
         "see SEVERAL SERVERS. There is no default. Do not put a password in a URL on the command "
         "line, which every user of the host can read.",
     .commands = kEvery,
     .section = Section::general},
    {.id = Opt::user,
     .name = "user",
     .metavar = "NAME",
     .environment = "RLOCK_USER",
     .help = "ACL user, instead of the URL's",
     .manual = "The permissions that this user needs are listed under ACCESS.",
     .commands = kEvery,
     .section = Section::general},
    {.id = Opt::password_file,
     .name = "password-file",
     .metavar = "FILE",
     .environment = "RLOCK_PASSWORD, REDISCLI_AUTH",
     .help = "read the password from FILE, at each connect",
     .manual =
         "Use it for a password that is mounted into a container or changes while rlock runs. "
         "FILE is refused where other users can write it. The variables contain the password "
         "itself. Cannot be combined with --password-command.",
     .commands = kEvery,
     .section = Section::general},
    {.id = Opt::password_command,
     .name = "password-command",
     .metavar = "CMD",
     .help = "the password is the first line that CMD prints, run by /bin/sh",
     .manual = "Use it for a password that a vault or a cloud service issues.",
     .commands = kEvery,
     .section = Section::general},
    {.id = Opt::cacert,
     .name = "cacert",
     .metavar = "FILE",
     .environment = "RLOCK_CACERT",
     .help = "TLS: trust the authorities in FILE, instead of the system's",
     .manual = "Use it for a server whose certificate a private authority has signed.",
     .commands = kEvery,
     .section = Section::general},
    {.id = Opt::cacertdir,
     .name = "cacertdir",
     .metavar = "DIR",
     .environment = "RLOCK_CACERTDIR",
     .fallback = "/etc/ssl/certs",
     .help = "TLS: trust the authorities in DIR, hashed by openssl rehash",
     .manual = "Use it instead of --cacert where each authority has a file of its own.",
     .commands = kEvery,
     .section = Section::general},
    {.id = Opt::cert,
     .name = "cert",
     .metavar = "FILE",
     .environment = "RLOCK_CERT",
     .help = "TLS: client certificate to present",
     .manual = "Use it where the server asks for one (tls-auth-clients).",
     .commands = kEvery,
     .section = Section::general},
    {.id = Opt::key,
     .name = "key",
     .metavar = "FILE",
     .environment = "RLOCK_KEY",
     .fallback = "the FILE of --cert",
     .help = "TLS: private key of the client certificate",
     .manual = "The key belongs to the certificate of --cert and must not be encrypted.",
     .commands = kEvery,
     .section = Section::general},
    {.id = Opt::sni,
     .name = "sni",
     .metavar = "NAME",
     .environment = "RLOCK_SNI",
     .fallback = "the URL's host",
     .help = "TLS: name to request from the server and to verify in its certificate",
     .manual = "Use it behind a tunnel, or for servers that share one certificate.",
     .commands = kEvery,
     .section = Section::general},
    {.id = Opt::insecure,
     .name = "insecure",
     .environment = "RLOCK_INSECURE",
     .help = "TLS: do not verify the server's certificate (prints a warning)",
     .manual =
         "Anyone between this host and the server can then read the password and grant the lock. "
         "Use it for tests only; --cacert is the safe way to accept a private certificate.",
     .commands = kEvery,
     .section = Section::general},
    {.id = Opt::prefix,
     .name = "prefix",
     .metavar = "TEXT",
     .environment = "RLOCK_PREFIX",
     .fallback = "rlock:",
     .help = "prefix of the keys at the server",
     .manual =
         "Use it to keep the locks of several teams or stages apart on one server: locks with "
         "different prefixes do not exclude each other. { and } are not allowed. The ACL rule "
         "under ACCESS must allow the prefix.",
     .commands = kEvery,
     .section = Section::general},
    {.id = Opt::connect_timeout,
     .name = "connect-timeout",
     .metavar = "DUR",
     .fallback = "2s",
     .help = "time limit to reach one server: DNS, connect, TLS and login",
     .manual =
         "When no server answers within it at first, rlock exits with 69. Use a longer one for "
         "distant servers.",
     .commands = kEvery,
     .section = Section::general},
    {.id = Opt::config,
     .name = "config",
     .metavar = "FILE",
     .environment = "RLOCK_CONFIG",
     .help = "read this configuration file and no other; else rlock/rlock.toml in ~/.config, then "
             "in /etc",
     .manual = "The file must exist. /dev/null switches all configuration files off. See "
               "rlock.toml(5).",
     .commands = kEvery,
     .section = Section::general},
    {.id = Opt::json,
     .name = "json",
     .help = "print JSON on standard output",
     .manual =
         "Use it in scripts: fields are only ever added. Errors are printed as JSON on standard "
         "output, too, beside the message on standard error. run does not have it, because its "
         "standard output belongs to the command: use --event-log.",
     .commands = kEvery & ~kRun,
     .section = Section::general},
    {.id = Opt::quiet,
     .letter = 'q',
     .name = "quiet",
     .help = "print only errors",
     .manual =
         "With run, a lock that is busy is not an error: use it in a crontab, where any output is "
         "mailed. With status it suppresses the listing, and the exit code says whether the lock "
         "is held.",
     .commands = kEvery,
     .section = Section::general},
    {.id = Opt::verbose,
     .letter = 'v',
     .name = "verbose",
     .help = "report each step on standard error",
     .manual =
         "Use it to see what rlock waits for, and when it acquires, renews and releases the lock.",
     .commands = kEvery,
     .section = Section::general},
    {.id = Opt::help,
     .letter = 'h',
     .name = "help",
     .help = "print this help",
     .manual = "Before a command word it lists the commands and the connection options.",
     .commands = kEvery,
     .section = Section::general},
    {.id = Opt::version,
     .letter = 'V',
     .name = "version",
     .help = "print the version",
     .commands = kEvery,
     .section = Section::general},
};

}  // namespace rlock::cli
