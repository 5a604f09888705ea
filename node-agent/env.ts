import { z } from 'zod'
import { logFilter, logFormat, timeout } from '../shared/env/read-env.ts'
import { type AllowEntry, readAllowEntry } from '../shared/http/outbound/allow-list.ts'
import { backends, isBackend } from '../shared/wire/runtime/isolation.ts'
import { ENROL_TOKEN } from '../shared/wire/runtime/node.ts'

/** What the node process reads from its environment. */
export const nodeEnv = z.object({
  /** State, bundles and snapshots; on a file system through which other users may walk. */
  NODE_AGENT_STATE_DIR: z.string().default('/var/lib/waybill/node'),
  /** Written by `node-agent image`. */
  NODE_AGENT_IMAGE_DIR: z.string().default('/var/lib/waybill/guest-image'),
  /** A folder for each image that agents may name, written by `node-agent image --name`. */
  NODE_AGENT_IMAGES_DIR: z.string().default('/var/lib/waybill/guest-images'),
  /** A comma list of the backends that may be used here; all of them when it is not set. */
  NODE_AGENT_BACKENDS: z
    .string()
    .transform(text =>
      text
        .split(',')
        .map(part => part.trim())
        .filter(part => part !== ''),
    )
    .superRefine((names, ctx) => {
      const unknown = names.find(name => name !== 'none' && !isBackend(name))
      if (unknown !== undefined)
        ctx.addIssue({ code: 'custom', message: `expected ${backends.join(', ')} or none; "${unknown}" is not one` })
    })
    .optional(),
  /** The accelerator of QEMU; software emulation is for development and is shown on every run. */
  NODE_AGENT_QEMU_ACCEL: z.enum(['kvm', 'tcg'], { error: 'expected kvm or tcg' }).default('kvm'),
  /** A folder of the operator's that containers see read-only as /opt: programs, such as Node and MCP servers. */
  NODE_AGENT_SANDBOX_TOOLS: z.string().regex(/^\//, 'expected an absolute path').optional(),
  /** The most machines that wait, paused, for what was asked for in the last five minutes. */
  PLATFORM_WARM_POOL: z
    .string()
    .regex(/^(\d|[1-5]\d|6[0-4])$/, 'expected 0 to 64 machines')
    .transform(Number)
    .default(2),
  /** The registry of install_packages with pip; the egress rules of an agent must name its host. */
  NODE_AGENT_PIP_INDEX: z.url({ protocol: /^https?$/, error: 'expected an http or https address' }).optional(),
  /** The same for npm. */
  NODE_AGENT_NPM_REGISTRY: z.url({ protocol: /^https?$/, error: 'expected an http or https address' }).optional(),
  FIRECRACKER_BIN: z.string().optional(),
  FIRECRACKER_JAILER: z.string().optional(),
  FIRECRACKER_KERNEL: z.string().optional(),
})
export type NodeEnv = z.output<typeof nodeEnv>

const allowList = z.string().transform((text, ctx): AllowEntry[] => {
  const parts = text.split(',').filter(part => part.trim() !== '')
  return parts.flatMap(part => {
    const entry = readAllowEntry(part)
    if (entry !== undefined) return [entry]
    ctx.addIssue({ code: 'custom', message: `expected names, addresses or networks; "${part.trim()}" is none` })
    return []
  })
})

/** What a node that runs reads besides. Providers are read by their own names, PLATFORM_PROVIDER_<ID>_API_KEY. */
export const nodeRunEnv = nodeEnv.extend({
  PLATFORM_CONTROL_URL: z.url({ protocol: /^https?$/, error: 'expected the http or https address of the tunnel' }),
  PLATFORM_ENROL_TOKEN: z.string().regex(ENROL_TOKEN, 'expected wb_node_ and 43 letters, digits, - or _').optional(),
  /** A PEM file to trust in place of the system's authorities. */
  PLATFORM_CONTROL_CA: z.string().optional(),
  PLATFORM_CONTROL_PIN: z
    .string()
    .transform(text => text.replaceAll(':', '').toLowerCase())
    .refine(text => /^[0-9a-f]{64}$/.test(text), 'expected the SHA-256 of a certificate in hex')
    .optional(),
  PLATFORM_TUNNEL_INSECURE: z.enum(['0', '1'], { error: 'expected 0 or 1' }).default('0'),
  /** Other nodes of the pool have the same store, at PLATFORM_DATABASE_URL. */
  PLATFORM_NODE_POOL_SHARED: z.enum(['0', '1'], { error: 'expected 0 or 1' }).default('0'),
  PLATFORM_DATABASE_URL: z
    .string()
    .regex(/^(?:https?|libsql|wss?):/, 'expected the address of a libSQL server; without one the store is a file')
    .optional(),
  PLATFORM_DATABASE_TOKEN: z.string().optional(),
  PLATFORM_DATA_DIR: z.string().default('./node-data'),
  PLATFORM_DRAIN_TIMEOUT: timeout.default(30_000),
  /** How long a model may keep its answer open without a word: pings and empty deltas are none. */
  PLATFORM_MODEL_CONTENT_TIMEOUT: timeout.default(600_000),
  PLATFORM_MAX_CONCURRENT_RUNS: z
    .string()
    .regex(/^[1-9]\d{0,3}$/, 'expected 1 to 9999 runs')
    .transform(Number)
    .default(64),
  PLATFORM_OUTBOUND_ALLOW: allowList.default([]),
  PLATFORM_DEMO: z.enum(['auto', 'off']).default('auto'),
  PLATFORM_LOG_LEVEL: logFilter.default({ all: 'info', byTarget: new Map() }),
  PLATFORM_LOG_FORMAT: logFormat.optional(),
})
