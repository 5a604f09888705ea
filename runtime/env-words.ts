import type { VariableGroups } from '../shared/env/variable-words.ts'
import type { RuntimeEnv } from './env.ts'

const DURATION = 'duration'
const INTERVAL = 'duration above 0'
const KEY = '32 bytes in base64'
const HTTP = '`http` or `https` address'

/** Each variable of `runtimeEnv` in a sentence or two, for docs/settings.md. */
export const runtimeWords: VariableGroups<keyof RuntimeEnv> = {
  'Where it listens': {
    PLATFORM_BIND: {
      about: 'Where the API and the dashboard listen. Beyond loopback `/metrics` needs a token.',
      form: '`host:port` or `[v6]:port`',
      default: 'localhost:8080',
      example: '0.0.0.0:8080',
    },
    PLATFORM_PROCESSES: {
      about:
        'How many processes answer there, each a control plane over the same libSQL server or shards. `auto`: two, and one where there is one core or the store is a file. SIGUSR2 replaces them one after the other. `npm start` and `runtime serve --with-router` run one.',
      form: '`auto` or a number from 1 to 4',
      default: '1',
    },
    PLATFORM_PUBLIC_URL: {
      about: 'The address that browsers use: links lead there, and with `https` cookies travel over HTTPS only.',
      form: HTTP,
      unset: 'the address it listens on',
      example: 'https://agents.example.com/app',
    },
    PLATFORM_TRUSTED_PROXIES: {
      about: 'Reverse proxies whose `x-forwarded-for` is believed.',
      form: 'comma list of addresses or networks',
      unset: 'none is believed',
      example: '10.0.0.0/8,127.0.0.1',
    },
    PLATFORM_CORS_ORIGINS: {
      about: 'Pages that may call the API from a browser, with a key and never with cookies.',
      form: 'comma list of whole origins',
      unset: 'none may',
      example: 'https://app.example.com',
    },
  },
  'Where it stores': {
    PLATFORM_DATA_DIR: {
      about: 'The folder of the store `waybill.db`, of `master.key` and of workspaces.',
      form: 'path',
      default: './data',
    },
    PLATFORM_DATABASE_URL: {
      about: 'A libSQL server, or another file, in the place of `waybill.db`.',
      form: 'address or path',
      unset: 'the file in `PLATFORM_DATA_DIR`',
      example: 'http://store:8080',
    },
    PLATFORM_DATABASE_TOKEN: {
      about: 'The token that this server asks for.',
      form: 'text, secret',
      unset: 'none is sent',
    },
    PLATFORM_DATABASE_REPLICA_URL: {
      about: 'A read replica of that server. Metrics and `runtime doctor` show its lag; nothing else is read from it.',
      form: 'address',
      unset: 'no lag is shown',
    },
    PLATFORM_DIRECTORY_URL: {
      about:
        'The directory of shards, in the place of `PLATFORM_DATABASE_URL`: a small database that says which databases there are and which tenant is in which. `PLATFORM_DATABASE_TOKEN` is sent to it and to every shard.',
      form: 'address or path',
      unset: 'there is one database',
      example: 'http://directory:8080',
    },
    PLATFORM_SHARDS: {
      about: 'The shards that this process serves.',
      form: 'comma list of names',
      unset: 'all of the directory',
      example: 'a,b',
    },
    PLATFORM_RETENTION_DAYS: {
      about: 'After so many days an ended run is deleted. `0` deletes none.',
      form: '0 to 3650',
      default: '0',
      example: '90',
    },
  },
  'Keys and secrets': {
    PLATFORM_MASTER_KEY: {
      about: 'The key that wraps all others. It is never stored, and what it sealed is lost without it.',
      form: `${KEY}, secret`,
      unset: 'read from the file',
    },
    PLATFORM_MASTER_KEY_FILE: {
      about: 'The file that holds the master key.',
      form: 'path',
      unset: '`master.key` in `PLATFORM_DATA_DIR`, made at the first start',
      example: '/run/secrets/master.key',
    },
    PLATFORM_RECEIPT_KEY: {
      about: 'The key that signs receipts, where it is not to be made and kept in the store.',
      form: `${KEY}, secret`,
      unset: 'made at the first start',
    },
    PLATFORM_BOOTSTRAP_KEY: {
      about:
        'An API key that works from the first start. With it no setup link is printed: the setup page takes this key.',
      form: '`wb_live_` and 32 or more letters, digits, `-` or `_`; secret',
      unset: 'a setup link is printed',
    },
    PLATFORM_METRICS_TOKEN: {
      about: 'The bearer token of `/metrics`.',
      form: '16 or more characters, secret',
      unset: 'open on loopback, closed on other addresses',
    },
  },
  'What it may reach': {
    PLATFORM_OUTBOUND_ALLOW: {
      about:
        'Private, loopback and link-local targets that providers, tools, connectors, MCP servers and webhooks may call. Public ones are open.',
      form: 'comma list of names, `*.name`, addresses or networks, each with or without `:port`',
      unset: 'none',
      example: 'wiki.internal:443,10.1.0.0/16',
    },
    PLATFORM_DEMO: {
      about:
        'Whether the simulated provider `demo` is there. With `auto` it stands in where no provider is configured.',
      form: '`auto` or `off`',
      default: 'auto',
    },
  },
  Limits: {
    PLATFORM_MAX_CONCURRENT_RUNS: {
      about:
        'Runs that this process executes at a time, each with at most one sandbox. The others wait their turn. A run that waits for its model counts; one that waits for a human, a timer or another run does not.',
      form: '1 to 9999',
      default: '64',
    },
    PLATFORM_MAX_BODY_BYTES: {
      about: 'The longest body of a request; a longer one is a 413.',
      form: '1024 to 1073741824',
      default: '1048576',
    },
  },
  Times: {
    PLATFORM_DRAIN_TIMEOUT: {
      about: 'After SIGTERM or SIGINT, how long open steps and requests may take to end.',
      form: DURATION,
      default: '30s',
    },
    PLATFORM_TURN_TIMEOUT: {
      about: 'How long a call of a session waits for the answer of its turn. The turn itself goes on.',
      form: DURATION,
      default: '2m',
    },
    PLATFORM_MODEL_CONTENT_TIMEOUT: {
      about: 'How long a model may keep its answer open without a word. Pings and empty pieces are none.',
      form: DURATION,
      default: '10m',
    },
    PLATFORM_SSE_HEARTBEAT: {
      about: 'How often a quiet stream of events says that it is alive.',
      form: INTERVAL,
      default: '15s',
    },
    PLATFORM_MAX_TENANT_STREAMS: {
      about:
        'Event streams that one tenant may have open in a process: of runs, of sessions and of pages. One more is refused with 429, so that connections are left for others.',
      form: '1 to 999999',
      default: '2000',
    },
    PLATFORM_LEASE_TTL: {
      about: 'How long a run stays with a process that was killed, before another one takes it.',
      form: INTERVAL,
      default: '1m',
    },
    PLATFORM_RECOVERY_INTERVAL: {
      about: 'How often the runtime looks for runs without a lease.',
      form: INTERVAL,
      default: '30s',
    },
    PLATFORM_DEFAULT_TIMEZONE: {
      about: 'The time zone of schedules that name none.',
      form: 'IANA name',
      unset: 'UTC',
      example: 'Europe/Berlin',
    },
  },
  'Nodes and other control planes': {
    PLATFORM_EMBEDDED_NODE: {
      about: 'Whether this process executes runs itself. With `off` only nodes do.',
      form: '`on` or `off`',
      default: 'on',
    },
    PLATFORM_TUNNEL_BIND: {
      about: 'Where nodes dial in; when it is set, from the start.',
      form: '`host:port` or `[v6]:port`',
      unset: '`localhost:8081`, once a node is announced',
      example: '0.0.0.0:8081',
    },
    PLATFORM_TUNNEL_TLS_CERT: {
      about: 'The certificate of the tunnel. Without it and its key only loopback is listened on.',
      form: 'path of a PEM file',
      unset: 'no TLS',
    },
    PLATFORM_TUNNEL_TLS_KEY: {
      about: 'The private key of that certificate.',
      form: 'path of a PEM file',
      unset: 'no TLS',
    },
    PLATFORM_TUNNEL_INSECURE: {
      about: '`1` allows plain text beyond this machine, where something else encrypts it.',
      form: '`0` or `1`',
      default: '0',
    },
    PLATFORM_DISPATCH_TIMEOUT: {
      about: 'How long a run waits for a node that can hold it, before it ends with `node_unavailable`.',
      form: DURATION,
      default: '5m',
    },
    PLATFORM_NODE_LOST_AFTER: {
      about: 'How long a node may be away before its runs end with `node_lost`. `0`: they wait for ever.',
      form: DURATION,
      default: '24h',
    },
    PLATFORM_PEER_URL: {
      about: 'Where other control planes on the same store reach this one.',
      form: `${HTTP} of host and port alone`,
      unset: 'each serves the nodes that dialled it',
      example: 'http://10.0.0.7:8080',
    },
  },
  'Logs and traces': {
    PLATFORM_LOG_LEVEL: {
      about: 'What is logged to standard error.',
      form: '`error`, `warn`, `info`, `debug`, `trace` or `off`, also as a list `target=level`',
      default: 'info',
      example: 'warn,runtime.nodes=debug',
    },
    PLATFORM_LOG_FORMAT: {
      about: 'How lines of the log are written.',
      form: '`json` or `text`',
      unset: '`text` on a terminal, else `json`',
    },
    PLATFORM_OTLP_ENDPOINT: {
      about:
        'The OpenTelemetry collector that gets a trace of each run, without a word of its content: its port for OTLP over HTTP, not the one for gRPC (4317).',
      form: HTTP,
      unset: 'that of `OTEL_EXPORTER_OTLP_ENDPOINT`',
      example: 'http://127.0.0.1:4318',
    },
    OTEL_EXPORTER_OTLP_ENDPOINT: {
      about: 'The same, by the name that OpenTelemetry gives it.',
      form: HTTP,
      unset: 'nothing is traced',
    },
    OTEL_EXPORTER_OTLP_HEADERS: {
      about: 'Headers for the collector, such as its key.',
      form: 'comma list of `name=value`, values percent-encoded',
      unset: 'none',
      example: 'authorization=Bearer%20abc',
    },
    OTEL_RESOURCE_ATTRIBUTES: {
      about: 'What stands in each trace about the service, such as where it is deployed.',
      form: 'comma list of `name=value`, values percent-encoded',
      unset: 'its name and version',
      example: 'deployment.environment.name=production',
    },
    OTEL_SERVICE_NAME: {
      about: 'The name under which traces arrive.',
      form: 'up to 200 characters',
      unset: '`service.name` of `OTEL_RESOURCE_ATTRIBUTES`, else `waybill-runtime`',
    },
  },
}

/** What the runtime reads by other means than `runtimeEnv`. */
export const moreRuntimeWords: VariableGroups<string> = {
  'Providers and connectors': {
    'PLATFORM_PROVIDER_<ID>_API_KEY': {
      about: 'The key of a provider, for every tenant that has set none itself.',
      form: '`<ID>` as in `ANTHROPIC`, `OPENAI` or `OPENAI_COMPATIBLE_MY_HOST`; secret',
      unset: 'tenants set their own',
    },
    'PLATFORM_PROVIDER_<ID>_BASE_URL': {
      about: 'Where this provider is, when it is elsewhere than its vendor has it.',
      form: HTTP,
      unset: "the vendor's",
    },
    'PLATFORM_OAUTH_<CONNECTOR>_CLIENT_ID': {
      about: 'The OAuth client that you registered with a vendor, for connectors by consent.',
      form: '`<CONNECTOR>` as in `GOOGLE`, `SLACK` or `GITHUB`',
      unset: 'no consent page',
    },
    'PLATFORM_OAUTH_<CONNECTOR>_CLIENT_SECRET': {
      about: 'The secret of this client, where the vendor gives one.',
      form: 'printable text, secret',
      unset: 'none is sent',
    },
  },
  'Its other commands': {
    PLATFORM_URL: {
      about: 'The service that commands such as `runtime run` talk to.',
      form: HTTP,
      unset: 'the one that `runtime login` kept, else `http://127.0.0.1:8080`',
    },
    PLATFORM_API_KEY: {
      about: 'The key that they send.',
      form: '`wb_live_…`, secret',
      unset: '`PLATFORM_BOOTSTRAP_KEY`, else the key that `runtime login` kept',
    },
    XDG_CONFIG_HOME: {
      about: 'Where `runtime login` keeps addresses and keys, in waybill/contexts.json.',
      form: 'path',
      unset: '`.config` in `HOME`',
    },
    NO_COLOR: {
      about: 'No colours, also on a terminal. A pipe and a file get none anyway.',
      form: 'any text',
      unset: 'colours on a terminal',
    },
    FORCE_COLOR: {
      about: 'Colours, also in a pipe.',
      form: '`1`',
      unset: 'colours on a terminal',
    },
    TERM: {
      about: 'What the terminal can do; `dumb` can show no colours.',
      form: 'name of a terminal',
      unset: 'colours on a terminal',
    },
  },
  'The process itself': {
    MALLOC_ARENA_MAX: {
      about:
        'How many arenas glibc allocates memory from. `npm start`, the images and the systemd unit set it to 1, which saves memory.',
      form: 'number',
      unset: 'as many as glibc finds right',
    },
    NODE_COMPILE_CACHE: {
      about:
        'The folder in which Node keeps compiled code for the next start. `NODE_DISABLE_COMPILE_CACHE=1` keeps none.',
      form: 'path',
      unset: '`.cache/waybill/compiled` in the `node_modules` of the installation, if it may be written',
    },
    NODE_OPTIONS: {
      about:
        'Options of Node. With `--disable-sigusr1` in it, SIGUSR1 opens no debugger even in the first moments of a start. `--max-semi-space-size=4` saves memory. The systemd unit sets both.',
      form: 'options',
      unset: 'none',
    },
  },
}
