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
    ROUTER_PROCESSES: {
      about:
        'How many processes answer at the address, beside one that writes receipts and keeps budgets. `auto`: one for each core, and one alone where there are two cores or fewer. SIGUSR2 replaces them one after the other. `npm start` and `runtime serve --with-router` run one.',
      form: '`auto` or a number from 1 to 99',
      default: '1',
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
      about: 'The token that this server asks for. It is sent to the directory and to every shard.',
      form: 'text, secret',
      unset: 'none is sent',
    },
    ROUTER_DIRECTORY_URL: {
      about:
        'The database that says which stores the router has and which tenant is in which (`router shards add`). It takes the place of `ROUTER_DB`.',
      form: 'path, or the address of a libSQL server',
      unset: 'one store: `ROUTER_DB`',
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
    OTEL_EXPORTER_OTLP_ENDPOINT: {
      about:
        'The OpenTelemetry collector that gets a trace of each call, without a word of its content: its port for OTLP over HTTP, not the one for gRPC (4317).',
      form: '`http` or `https` address',
      unset: 'nothing is traced',
      example: 'http://127.0.0.1:4318',
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
      unset: '`service.name` of `OTEL_RESOURCE_ATTRIBUTES`, else `waybill-router`',
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
  },
  'Credentials of cloud hosts': {
    AWS_BEARER_TOKEN_BEDROCK: {
      about: 'A Bedrock API key. It takes precedence over every signature, where `service` is `bedrock`.',
      form: 'text, secret',
      unset: 'calls are signed',
    },
    AWS_ACCESS_KEY_ID: {
      about: 'The key id of providers with `auth = "sigv4"`.',
      form: 'text',
      unset: 'the next source is asked: [cloud hosts](router.md#cloud-hosts)',
    },
    AWS_SECRET_ACCESS_KEY: {
      about: 'The key that belongs to it.',
      form: 'text, secret',
      unset: 'the next source is asked',
    },
    AWS_SESSION_TOKEN: {
      about: 'The token of a temporary key.',
      form: 'text, secret',
      unset: 'none is sent',
    },
    AWS_PROFILE: {
      about: 'The profile of the shared files whose credentials are used.',
      form: 'name',
      unset: '`default`, if it has credentials',
    },
    AWS_CONFIG_FILE: {
      about: 'The file of profiles and sign-ons.',
      form: 'path',
      unset: '`.aws/config` in `HOME`',
    },
    AWS_SHARED_CREDENTIALS_FILE: {
      about: 'The file of keys.',
      form: 'path',
      unset: '`.aws/credentials` in `HOME`',
    },
    AWS_WEB_IDENTITY_TOKEN_FILE: {
      about:
        'The file of a token that the platform renews; with `AWS_ROLE_ARN` it is exchanged for the keys of that role.',
      form: 'path',
      unset: 'the next source is asked',
    },
    AWS_ROLE_ARN: {
      about: 'The role that this token stands for.',
      form: 'ARN',
      unset: 'the next source is asked',
    },
    AWS_ROLE_SESSION_NAME: {
      about: 'The name of its sessions.',
      form: 'text',
      unset: '`waybill-` and the time',
    },
    AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: {
      about: 'The path of the credentials at the agent of ECS.',
      form: 'path',
      unset: 'the next source is asked',
    },
    AWS_CONTAINER_CREDENTIALS_FULL_URI: {
      about: 'The same as a whole address. Plain `http` goes to this machine and to the agents of ECS and EKS only.',
      form: 'address',
      unset: 'the next source is asked',
    },
    AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: {
      about: 'The file of what is sent there in `authorization`.',
      form: 'path',
      unset: '`AWS_CONTAINER_AUTHORIZATION_TOKEN`',
    },
    AWS_CONTAINER_AUTHORIZATION_TOKEN: {
      about: 'The same as a value.',
      form: 'text, secret',
      unset: 'none is sent',
    },
    AWS_EC2_METADATA_DISABLED: {
      about: '`true` leaves the metadata service of EC2 out.',
      form: '`true` or `false`',
      unset: 'it is asked last',
    },
    AWS_EC2_METADATA_SERVICE_ENDPOINT: {
      about: 'Where that service is.',
      form: 'address',
      unset: '`http://169.254.169.254`',
    },
    AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE: {
      about: '`IPv6` asks it at `[fd00:ec2::254]`.',
      form: '`IPv4` or `IPv6`',
      unset: '`IPv4`',
    },
    AWS_ENDPOINT_URL_STS: {
      about: 'Where the token service of AWS is.',
      form: 'https address',
      unset: 'that of the region',
    },
    AWS_ENDPOINT_URL_SSO: {
      about: 'Where the portal of the single sign-on is.',
      form: 'https address',
      unset: 'that of the region',
    },
    AWS_ENDPOINT_URL_SSO_OIDC: {
      about: 'Where a sign-on is renewed.',
      form: 'https address',
      unset: 'that of the region',
    },
    AWS_ENDPOINT_URL: {
      about: 'Where these three are, if their own variable is not set.',
      form: 'https address',
      unset: 'that of the region',
    },
    AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: {
      about: '`true` leaves the four addresses above out.',
      form: '`true` or `false`',
      unset: 'they count',
    },
    GOOGLE_APPLICATION_CREDENTIALS: {
      about: 'The file of the credentials of providers with `auth = "oauth"` and without `credentials_env`.',
      form: 'path',
      unset: 'what `gcloud auth application-default login` wrote, else the metadata server',
    },
    CLOUDSDK_CONFIG: {
      about: 'The folder that `gcloud` writes to.',
      form: 'path',
      unset: '`.config/gcloud` in `HOME`',
    },
    GOOGLE_CLOUD_QUOTA_PROJECT: {
      about: 'The project whose quota is used.',
      form: 'name',
      unset: 'that of the credentials',
    },
    GCE_METADATA_HOST: {
      about: 'Where the metadata server of Google is.',
      form: 'host, with its port',
      unset: '`169.254.169.254`',
    },
    GCE_METADATA_IP: {
      about: 'The same; it takes precedence.',
      form: 'host, with its port',
      unset: '`GCE_METADATA_HOST`',
    },
    METADATA_SERVER_DETECTION: {
      about: '`none` leaves that server out.',
      form: '`none`',
      unset: 'it is asked last',
    },
    AZURE_TENANT_ID: {
      about: 'The tenant of providers with `auth = "entra"`.',
      form: 'id',
      unset: 'the managed identity of the machine',
    },
    AZURE_CLIENT_ID: {
      about: 'The application, or the managed identity that the machine has been given.',
      form: 'id',
      unset: 'the identity of the machine itself',
    },
    AZURE_CLIENT_SECRET: {
      about: 'The secret of the application.',
      form: 'text, secret',
      unset: '`AZURE_FEDERATED_TOKEN_FILE`',
    },
    AZURE_FEDERATED_TOKEN_FILE: {
      about: 'The file of a token of the application that the platform renews.',
      form: 'path',
      unset: 'the managed identity of the machine',
    },
    AZURE_AUTHORITY_HOST: {
      about: 'Where Microsoft Entra is.',
      form: 'https address',
      unset: '`https://login.microsoftonline.com`',
    },
    IDENTITY_ENDPOINT: {
      about: 'Where App Service and its like give the token of the managed identity. Set by them.',
      form: 'address',
      unset: 'the metadata service of the machine',
    },
    IDENTITY_HEADER: {
      about: 'The secret of that address. Set by them.',
      form: 'text, secret',
      unset: 'the metadata service of the machine',
    },
    AZURE_POD_IDENTITY_AUTHORITY_HOST: {
      about: 'Where the metadata service of Azure is.',
      form: 'address',
      unset: '`http://169.254.169.254`',
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
