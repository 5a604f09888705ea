import type { z } from 'zod'
import type { VariableGroups } from '../shared/env/variable-words.ts'
import type { nodeRunEnv } from './env.ts'

const HTTP = '`http` or `https` address'

/** Each variable of `nodeRunEnv` in a sentence or two, for docs/settings.md. */
export const nodeWords: VariableGroups<keyof z.output<typeof nodeRunEnv>> = {
  'The control plane': {
    PLATFORM_CONTROL_URL: {
      about: 'The tunnel of the control plane, which the node dials.',
      form: HTTP,
      unset: '`node-agent run` does not start',
      example: 'https://control.example:8081',
    },
    PLATFORM_ENROL_TOKEN: {
      about: 'The token of the first start. It works once; later starts need none.',
      form: '`wb_node_` and 43 letters, digits, `-` or `_`; secret',
      unset: 'the node knows itself by `node.json`',
    },
    PLATFORM_CONTROL_CA: {
      about: 'The authority to trust in place of those of the system.',
      form: 'path of a PEM file',
      unset: 'those of the system',
    },
    PLATFORM_CONTROL_PIN: {
      about: 'The one certificate to take, as `/.well-known/platform-nodes` shows it.',
      form: 'SHA-256 in hex, with or without colons',
      unset: 'any that is trusted',
    },
    PLATFORM_TUNNEL_INSECURE: {
      about: '`1` allows plain text beyond this machine, where something else encrypts it.',
      form: '`0` or `1`',
      default: '0',
    },
  },
  'Where it stores': {
    PLATFORM_DATA_DIR: {
      about: 'The folder of `node.json`, of the store `node.db` and of workspaces.',
      form: 'path',
      default: './node-data',
    },
    PLATFORM_DATABASE_URL: {
      about: 'A libSQL server in the place of `node.db`.',
      form: 'address',
      unset: 'the file in `PLATFORM_DATA_DIR`',
      example: 'http://store:8080',
    },
    PLATFORM_DATABASE_TOKEN: {
      about: 'The token that this server asks for.',
      form: 'text, secret',
      unset: 'none is sent',
    },
    PLATFORM_NODE_POOL_SHARED: {
      about: "`1`: other nodes of the pool have the same server, and take up each other's runs.",
      form: '`0` or `1`',
      default: '0',
    },
  },
  'Limits and times': {
    PLATFORM_MAX_CONCURRENT_RUNS: {
      about: 'Runs that this node executes at a time, each with at most one sandbox. It is offered no more.',
      form: '1 to 9999',
      default: '64',
    },
    PLATFORM_DRAIN_TIMEOUT: {
      about: 'After SIGTERM or SIGINT, how long open steps may take to end.',
      form: 'duration',
      default: '30s',
    },
    PLATFORM_MODEL_CONTENT_TIMEOUT: {
      about: 'How long a model may keep its answer open without a word. Pings and empty pieces are none.',
      form: 'duration',
      default: '10m',
    },
    PLATFORM_OUTBOUND_ALLOW: {
      about: 'Private, loopback and link-local targets that tools, connectors and sandboxes may call.',
      form: 'comma list of names, `*.name`, addresses or networks, each with or without `:port`',
      unset: 'none',
      example: '10.1.0.0/16',
    },
    PLATFORM_DEMO: {
      about:
        'Whether the simulated provider `demo` is there. With `auto` it stands in where no provider is configured.',
      form: '`auto` or `off`',
      default: 'auto',
    },
    PLATFORM_LOG_LEVEL: {
      about: 'What is logged to standard error.',
      form: '`error`, `warn`, `info`, `debug`, `trace` or `off`, also as a list `target=level`',
      default: 'info',
    },
    PLATFORM_LOG_FORMAT: {
      about: 'How lines of the log are written.',
      form: '`json` or `text`',
      unset: '`text` on a terminal, else `json`',
    },
  },
  Sandboxes: {
    NODE_AGENT_BACKENDS: {
      about: 'The backends that may be used; no other is tried. `none`: not one of them.',
      form: 'comma list of `wasm`, `runc`, `gvisor`, `qemu`, `kata`, `firecracker`',
      unset: 'all that work here',
      example: 'gvisor,qemu',
    },
    NODE_AGENT_STATE_DIR: {
      about: 'State, bundles and snapshots. Other users must be able to walk through the path.',
      form: 'path',
      default: '/var/lib/waybill/node',
    },
    NODE_AGENT_IMAGE_DIR: {
      about: 'The guest image, which `node-agent image` writes.',
      form: 'path',
      default: '/var/lib/waybill/guest-image',
    },
    NODE_AGENT_IMAGES_DIR: {
      about:
        'A folder for each further guest image, under the name by which agents ask for it. `node-agent image --name` writes one.',
      form: 'path',
      default: '/var/lib/waybill/guest-images',
    },
    NODE_AGENT_SANDBOX_TOOLS: {
      about: 'A folder that containers (runc, gVisor) see read-only as `/opt`: programs such as Node and MCP servers.',
      form: 'absolute path',
      unset: 'none',
      example: '/srv/tools',
    },
    NODE_AGENT_QEMU_ACCEL: {
      about: 'The accelerator of QEMU. Emulation (`tcg`) is for development, and every run shows it.',
      form: '`kvm` or `tcg`',
      default: 'kvm',
    },
    PLATFORM_WARM_POOL: {
      about:
        'The most virtual machines of an image that wait, paused, of all kinds together: of a kind as many as were asked for within one second of the last five minutes.',
      form: '0 to 64',
      default: '2',
    },
    NODE_AGENT_PIP_INDEX: {
      about: 'The registry of `install_packages` with pip. The egress rules of an agent must name its host.',
      form: HTTP,
      unset: 'the public one',
    },
    NODE_AGENT_NPM_REGISTRY: {
      about: 'The same with npm.',
      form: HTTP,
      unset: 'the public one',
    },
    FIRECRACKER_BIN: {
      about: 'Where Firecracker is.',
      form: 'path',
      unset: '`firecracker` on `PATH`',
    },
    FIRECRACKER_JAILER: {
      about: 'Where its jailer is.',
      form: 'path',
      unset: '`jailer` on `PATH`',
    },
    FIRECRACKER_KERNEL: {
      about: 'The kernel that it boots.',
      form: 'path',
      unset: "the image's",
    },
  },
}

/** What the node reads by other means, and what it gives to programs that it starts. */
export const moreNodeWords: VariableGroups<string> = {
  'The process itself': {
    PATH: {
      about: 'Where the programs of backends are looked for, such as `runc` and `qemu-system-x86_64`.',
      form: 'list of folders',
      unset: 'none is found',
    },
  },
  'Building the image': {
    WAYBILL_GUEST_INPUTS: {
      about: 'The kernel and the tools that `scripts/setup-host.sh` unpacked, for `node-agent image`.',
      form: 'path',
      default: '/var/lib/waybill/guest-inputs',
    },
  },
  'Set for programs in a sandbox': {
    WAYBILL_RUN_ID: {
      about: 'The id of the run.',
      form: 'text',
      unset: 'set by the node',
    },
    WAYBILL_STEP_URL: {
      about: 'Where a code agent asks for its steps ([code-agents.md](code-agents.md)).',
      form: 'address on loopback of the sandbox',
      unset: 'set by the node for code agents',
    },
    WAYBILL_STEP_TOKEN: {
      about: 'The bearer token of these calls.',
      form: 'text, secret',
      unset: 'set by the node for code agents',
    },
  },
}
