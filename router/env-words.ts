import type { VariableGroups } from '../shared/env/variable-words.ts'
import type { RouterEnv } from './env.ts'

const HTTP = '`http` or `https` address'
const FLAG = '`0` or `1`'

/** Each variable of `routerEnv` in a sentence or two, for docs/settings.md. */
export const routerWords: VariableGroups<keyof RouterEnv> = {
  'What it does': {
    ROUTER_MODE: {
      about: 'The mode of routes that name none. `observe` passes every call on as it is, `enforce` routes it.',
      form: '`observe` or `enforce`',
      default: 'observe',
    },
    ROUTER_CONFIG: {
      about: 'The routing config. SIGHUP reads it again.',
      form: 'path of a TOML file',
      unset: 'every call is observed',
      example: 'routing.toml',
    },
    ROUTER_WATCH: {
      about: '`1` reads the config again when the file changes. A config with a mistake leaves the old one in force.',
      form: FLAG,
      default: '0',
    },
    ROUTER_UPSTREAM_MESSAGES: {
      about: 'Where calls of the messages dialect go, unless a `[[provider]]` says otherwise.',
      form: HTTP,
      default: 'https://api.anthropic.com',
    },
    ROUTER_UPSTREAM_CHAT: {
      about: 'The same for the chat-completions dialect.',
      form: HTTP,
      default: 'https://api.openai.com',
    },
    ROUTER_RESPONSE_HEADERS: {
      about: '`0` leaves the `x-router-*` headers out of answers.',
      form: FLAG,
      default: '1',
    },
  },
  'Where it listens, and for whom': {
    ROUTER_BIND: {
      about: 'Where it listens. `npm start` and `runtime serve --with-router` take 127.0.0.1:8090.',
      form: '`host:port` or `[v6]:port`',
      default: '127.0.0.1:8080',
    },
    ROUTER_KEYS: {
      about: 'Keys of callers by tenant, sent as `x-router-key`. `!` marks an administrator.',
      form: 'list of `tenant:key`, `tenant!:key` or `tenant:sha256:<hex>`, keys of 24 characters or more; or a file that holds it, as `@/run/secrets/router-keys`; secret',
      unset: 'calls need no key, and beyond loopback the audit paths are closed',
    },
    ROUTER_TENANT: {
      about: 'The tenant of calls without a key.',
      form: '1 to 64 letters, digits, `.`, `-` or `_`',
      default: 'default',
    },
    ROUTER_ALLOWED_ORIGINS: {
      about: 'Pages whose calls a router without `ROUTER_KEYS` takes, and the address that a proxy serves it at.',
      form: 'comma list of whole origins',
      unset: 'none',
      example: 'https://app.example.com,app://name',
    },
    ROUTER_INSECURE: {
      about: '`1` opens the audit paths beyond loopback to everyone, without a key.',
      form: FLAG,
      default: '0',
    },
    ROUTER_METRICS_OPEN: {
      about: '`1` opens `/metrics` beyond loopback to everyone.',
      form: FLAG,
      default: '0',
    },
  },
  'Where it stores': {
    ROUTER_DB: {
      about: 'The trace store. `runtime serve --with-router` takes `router.db` in `PLATFORM_DATA_DIR`.',
      form: 'path, `:memory:`, or the address of a libSQL server',
      default: 'router.db',
    },
    ROUTER_DB_TOKEN: {
      about: 'The token that this server asks for.',
      form: 'text, secret',
      unset: 'none is sent',
    },
    ROUTER_RECEIPTS: {
      about: 'With `durable` an answer ends only after its receipt is in the store or on the disk.',
      form: '`durable`',
      unset: 'best effort: a `kill -9` may lose what is queued',
    },
  },
  'Keys and secrets': {
    ROUTER_SIGNING_KEY: {
      about: 'The key that signs checkpoints. It goes before the file.',
      form: '32 bytes in base64, secret',
      unset: 'read from the file',
    },
    ROUTER_SIGNING_KEY_FILE: {
      about: 'The file that holds this key.',
      form: 'path',
      unset: 'the path of the store and `.key`, made at the first start; with a server as the store, nothing is signed',
    },
    ROUTER_ANCHOR_FILE: {
      about: 'A file that gets a copy of each checkpoint. Keep it where the store cannot be changed along with it.',
      form: 'path',
      unset: 'no second copy',
    },
    ROUTER_PROMPT_SALT: {
      about: 'The salt of the hashes that identify prompts.',
      form: 'text, secret',
      unset: 'made at the first start and kept in the store',
    },
  },
  'Times and logs': {
    ROUTER_DRAIN_SECONDS: {
      about: 'After SIGTERM or SIGINT, how long open requests may take to end.',
      form: 'seconds, 0 to 9999',
      default: '30',
    },
    ROUTER_LOG: {
      about: 'What is logged to standard error. Target `router.calls` has one line for each call, at `info`.',
      form: '`error`, `warn`, `info`, `debug`, `trace` or `off`, also as a list `target=level`',
      unset: '`RUST_LOG`',
      example: 'warn,router.mcp=debug',
    },
    ROUTER_LOG_FORMAT: {
      about: 'How lines of the log are written.',
      form: '`json` or `text`',
      unset: '`text` on a terminal, else `json`',
    },
    RUST_LOG: {
      about: 'The same, where `ROUTER_LOG` is not set.',
      form: 'as `ROUTER_LOG`',
      default: 'info',
    },
  },
}

/** What the router reads by other means than `routerEnv`, and what it gives to programs that it starts. */
export const moreRouterWords: VariableGroups<string> = {
  'Keys of providers': {
    ANTHROPIC_API_KEY: {
      about: 'The key of the provider `anthropic`, where the client sends none. A `[[provider]]` may name another one.',
      form: 'text, secret',
      unset: 'the client sends its own',
    },
    OPENAI_API_KEY: {
      about: 'The same for the provider `openai`.',
      form: 'text, secret',
      unset: 'the client sends its own',
    },
    AWS_ACCESS_KEY_ID: {
      about: 'The key id of providers with `auth = "sigv4"`.',
      form: 'text',
      unset: 'these providers have no key',
    },
    AWS_SECRET_ACCESS_KEY: {
      about: 'The key that belongs to it.',
      form: 'text, secret',
      unset: 'these providers have no key',
    },
    AWS_SESSION_TOKEN: {
      about: 'The token of a temporary key.',
      form: 'text, secret',
      unset: 'none is sent',
    },
  },
  'Some hosts and commands only': {
    ROUTER_CONFIG_TEXT: {
      about: 'The text of the routing config, on a host without files. It stands for `ROUTER_CONFIG` there.',
      form: 'TOML',
      unset: 'every call is observed',
    },
    ROUTER_DB_REPLICA_OF: {
      about: 'The server that the file `ROUTER_DB` is a copy of: commands that read bring it up to date first.',
      form: 'address of a libSQL server',
      unset: 'the file is read as it is',
      example: 'http://store:8080',
    },
    SHELL: {
      about: 'Which start-up file `router onboard` writes to.',
      form: 'path of bash, zsh or fish',
      unset: "the account's shell",
    },
    HOME: {
      about: 'Where this file is.',
      form: 'path',
      unset: "the account's home",
    },
    ZDOTDIR: {
      about: 'Where it is for zsh.',
      form: 'path',
      unset: '`HOME`',
    },
    XDG_CONFIG_HOME: {
      about: 'Where it is for fish.',
      form: 'path',
      unset: '`.config` in `HOME`',
    },
    XDG_STATE_HOME: {
      about: 'Where the router that `onboard` starts keeps its traces and its log, in a folder `waybill`.',
      form: 'path',
      unset: '`.local/state` in `HOME`',
    },
    PATH: {
      about: 'Where programs are looked for: those of gates and of `router launch`.',
      form: 'list of folders',
      unset: '`/usr/local/bin:/usr/bin:/bin` for gates',
    },
    LANG: {
      about: 'Passed on to the programs of gates.',
      form: 'locale',
      default: 'C.UTF-8',
    },
    TZ: {
      about: 'Passed on to the programs of gates.',
      form: 'time zone',
      default: 'UTC',
    },
  },
  'Set for programs that it starts': {
    ROUTER_GATE_ID: {
      about: 'The id of the gate whose program this is.',
      form: 'text',
      unset: 'set by the router',
    },
  },
}
