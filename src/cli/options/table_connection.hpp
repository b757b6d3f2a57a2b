#pragma once

#include "cli/options/options.hpp"

// The options of every command, unless their row names some: which server, how to reach it, what to
// print.
namespace rlock::cli {

inline constexpr OptionRow kConnectionOptions[] = {
    {.id = Opt::url,
     .letter = 'u',
     .name = "url",
     .metavar = "URL",
     .environment = "RLOCK_URL",
     .help = "the server: redis://HOST[:PORT][/DB], rediss:// for TLS, unix:///PATH, local: and "
             "others; give three or more for a quorum",
     .manual = "To give several servers, repeat the option, or separate the URLs in one text by "
               "white space or commas. Two servers are not enough, because they cannot form a "
               "majority: see SEVERAL SERVERS. There is no default. Do not put a password in a URL "
               "on the command line, because every user of the host can read the command line.",
     .common = true},
    {.id = Opt::user,
     .name = "user",
     .metavar = "NAME",
     .environment = "RLOCK_USER",
     .help = "ACL user, instead of the one in the URL",
     .manual = "ACCESS lists the permissions that this user needs."},
    {.id = Opt::password_file,
     .name = "password-file",
     .metavar = "FILE",
     .environment = "RLOCK_PASSWORD, REDISCLI_AUTH",
     .help = "read the password from FILE each time rlock connects",
     .manual =
         "Use it for a password that is mounted into a container or changes while rlock runs. "
         "rlock does not use FILE if other users can write to it. The environment variables "
         "contain the password itself. This option cannot be combined with --password-command."},
    {.id = Opt::password_command,
     .name = "password-command",
     .metavar = "CMD",
     .help = "run CMD with /bin/sh; the first line that it prints is the password",
     .manual = "Use it for a password that a vault or a cloud service issues. Do not write a "
               "password into CMD: the list of processes and rlock config show it."},
    {.id = Opt::cacert,
     .name = "cacert",
     .metavar = "FILE",
     .environment = "RLOCK_CACERT",
     .help = "TLS: trust the CA certificates in FILE, instead of the system's",
     .manual =
         "Use it for a server whose certificate a private certificate authority (CA) has signed."},
    {.id = Opt::cacertdir,
     .name = "cacertdir",
     .metavar = "DIR",
     .environment = "RLOCK_CACERTDIR",
     .fallback = "/etc/ssl/certs",
     .help = "TLS: trust the CA certificates in DIR, prepared by openssl rehash",
     .manual = "Use it instead of --cacert if each CA certificate is in a file of its own."},
    {.id = Opt::cert,
     .name = "cert",
     .metavar = "FILE",
     .environment = "RLOCK_CERT",
     .help = "TLS: client certificate to present",
     .manual = "Use it if the server requires one (tls-auth-clients)."},
    {.id = Opt::key,
     .name = "key",
     .metavar = "FILE",
     .environment = "RLOCK_KEY",
     .fallback = "the FILE of --cert",
     .help = "TLS: private key of the client certificate",
     .manual = "The key must match the certificate of --cert and must not be encrypted."},
    {.id = Opt::sni,
     .name = "sni",
     .metavar = "NAME",
     .environment = "RLOCK_SNI",
     .fallback = "the URL's host",
     .help = "TLS: name to request from the server and to verify in its certificate",
     .manual = "Use it behind a tunnel, or for servers that share one certificate."},
    {.id = Opt::insecure,
     .name = "insecure",
     .environment = "RLOCK_INSECURE",
     .help = "TLS: do not verify the server's certificate (prints a warning)",
     .manual = "Anyone who controls the network can then read the password and pretend to grant "
               "the lock. Use it for tests only; --cacert is the safe way to accept a certificate "
               "of a private CA, and has no effect beside this option."},
    {.id = Opt::prefix,
     .name = "prefix",
     .metavar = "TEXT",
     .environment = "RLOCK_PREFIX",
     .fallback = "rlock:",
     .help = "prefix of the keys at the server",
     .manual =
         "Use it to keep the locks of several teams or stages apart on one server: locks with "
         "different prefixes do not exclude each other. { and } are not allowed. The ACL rule "
         "under ACCESS must allow the prefix."},
    {.id = Opt::connect_timeout,
     .name = "connect-timeout",
     .metavar = "DUR",
     .fallback = "2s",
     .help = "time limit to reach one server: DNS, connect, TLS and login",
     .manual = "If no server answers the first request within this time, rlock exits with 69. Use "
               "a longer time for distant servers."},
    {.id = Opt::replicas,
     .name = "replicas",
     .metavar = "N",
     .fallback = "0",
     .help = "a grant, a renewal and a release count once N replicas have confirmed them",
     .manual =
         "Use it if a fail-over must not forget a grant: a lock that is granted is still held "
         "after "
         "a fail-over to a replica that confirmed it. If too few replicas confirm a grant, rlock "
         "keeps it, and starts the command once they do; after 60 s, or the time of --wait, it "
         "exits with 69. A renewal that they do not confirm has failed, so a master that is cut "
         "off "
         "from its replicas ends its commands. All runs of NAME must have this option: set it in "
         "rlock.toml. N should be the number of replicas that may become master, less one if one "
         "of "
         "them may be away; with fewer a network that splits can let two runs in. doctor checks "
         "it. See LIMITS. It cannot be used with several servers, local: or --format.",
     .commands = kRun | kAcquire | kRenew | kRelease | kDoctor},
    {.id = Opt::config,
     .name = "config",
     .metavar = "FILE",
     .environment = "RLOCK_CONFIG",
     .help = "read only this configuration file, instead of rlock/rlock.toml in ~/.config or /etc",
     .manual =
         "The file must exist. /dev/null turns all configuration files off. See rlock.toml(5)."},
    {.id = Opt::json,
     .name = "json",
     .help = "print JSON on standard output",
     .manual = "Use it in scripts: later versions may add fields, but do not remove any. rlock "
               "also prints errors as JSON on standard output, in addition to the message on "
               "standard error. renew and release print nothing when they succeed. "
               "run does not have this option, because standard output belongs to "
               "the command: use --event-log.",
     .commands = kEveryCommand & ~(kRun | kMetrics | kCheck | kLocal),
     .common = true},
    {.id = Opt::quiet,
     .letter = 'q',
     .name = "quiet",
     .help = "print only errors",
     .manual = "With run, a busy lock is not an error: use it in a crontab, because cron mails any "
               "output. With status it suppresses the listing, and the exit code shows whether the "
               "lock is held.",
     .common = true},
    {.id = Opt::verbose,
     .letter = 'v',
     .name = "verbose",
     .help = "report each step on standard error, with the time",
     .manual =
         "Use it to see what rlock waits for, and when it acquires, renews and releases the lock."},
    {.id = Opt::help,
     .letter = 'h',
     .name = "help",
     .help = "print help: -h in short, --help in full",
     .manual = "Before a command, it lists the commands; --help also the connection options.",
     .common = true},
    {.id = Opt::version, .letter = 'V', .name = "version", .help = "print the version"},
};

}  // namespace rlock::cli
