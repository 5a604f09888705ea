import { z } from 'zod'
import { expected, freeForm, int, num, shape, text } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { connectorRef } from './catalog.ts'
import { agentName, usdLimit } from './conventions.ts'
import { hostRule } from './host-rule.ts'
import { IMAGE_NAME, isolation, refusedInWasm, toolsRefusedBy } from './isolation.ts'
import { files, mcpServers, secrets } from './manifest-parts.ts'
import { modelName } from './model-name.ts'
import { compilePattern } from './pattern.ts'
import { toolEntry } from './tool.ts'

const model = text(1, 200)
  .transform((value, ctx) => {
    const read: string | undefined = modelName(value)?.value
    if (read !== undefined) return read
    ctx.addIssue({
      code: 'custom',
      message: `unknown model '${value}'; expected auto, a capability alias, or <provider>/<model> with a known provider`,
    })
    return z.NEVER
  })
  .pipe(z.string())

const imageName = shape(IMAGE_NAME, "an image's name: a lower-case letter, then up to 31 of a-z, 0-9 and '-'")

const limits = z.strictObject({
  vcpus: num(0.25, 16).default(1),
  memoryMb: int(64, 65_536).default(512),
  diskMb: int(64, 102_400).default(1024),
  timeoutSeconds: int(1, 86_400).default(3600),
  maxSteps: int(1, 2000).default(200),
  maxTurns: int(1, 500).default(25),
  maxOutputTokens: int(16, 200_000).default(4096),
})

const egressRule = hostRule.extend({
  /** Absent: all methods. */
  methods: z
    .array(
      shape(/^[A-Za-z]{1,20}$/, 'an HTTP method')
        .transform(method => method.toUpperCase())
        .pipe(z.string()),
    )
    .min(1)
    .optional(),
})
export type EgressRule = z.infer<typeof egressRule>

const connectorEntry = z.string().refine(value => connectorRef(value) !== undefined, {
  error: 'unknown connector or action; see GET /v1/connectors/catalog',
})

const objectSchema = (member: 'inputSchema' | 'outputSchema') =>
  freeForm.refine(schema => schema.type === 'object', {
    path: ['type'],
    error: `expected 'object' at the root of ${member}`,
  })

const retry = z.strictObject({
  maxAttempts: int(1, 10).default(3),
  /** Absent: 10, and 1 where `maxAttempts` is 1. */
  unbilledAttempts: int(1, 100).optional(),
  backoffMs: int(0, 60_000).default(500),
  maxBackoffMs: int(0, 86_400_000).default(30_000),
  jitter: z.boolean().default(true),
})

const confidence = z.strictObject({
  threshold: num(0, 1).default(0.75),
  estimator: z.enum(['verbalized', 'self-consistency']).default('verbalized'),
  samples: int(2, 9).default(5),
  /** `tools`, `connectors`, `mcp`, `output`, or the exposed name of one tool. */
  gates: z.array(text(1, 200)).default(['tools', 'connectors', 'mcp']),
  onLow: z.enum(['approve', 'fail']).default('approve'),
})

const approvals = z.strictObject({
  tools: z
    .array(shape(/^[A-Za-z0-9_.:-]{0,199}(\*|[A-Za-z0-9_.:-])$/, 'an exposed tool name, optionally ending in *'))
    .default([]),
  expiresMinutes: int(1, 43_200).default(1440),
  onExpire: z.enum(['fail', 'reject']).default('fail'),
  onReject: z.enum(['fail', 'continue']).default('fail'),
})

const anomalies = z.strictObject({
  loopIterations: int(0).default(500),
  steps: int(0).default(80),
  retries: int(0).default(10),
  costUsd: usdLimit.default(5),
  tokens: int(0).default(500_000),
  action: z.enum(['report', 'wait', 'fail']).default('report'),
})

const session = z.strictObject({
  idleTimeoutSeconds: int(60, 86_400).default(1800),
  historyTurns: int(0, 200).default(20),
  dedicatedMicrovm: z.boolean().default(false),
})

const entrypoint = z.strictObject({
  command: text(1, 4096),
  args: z.array(text(0, 131_072)).default([]),
  env: z.record(text(1, 256), text(0, 131_072)).default({}),
})

const personalData = z.enum(['email', 'phone', 'card', 'iban', 'ssn', 'ip'])
export type PersonalData = z.infer<typeof personalData>

/** What an author wants noContent, under the name that takes its place. */
const ownPattern = z.strictObject({
  name: shape(/^[a-z][a-z0-9_-]{0,31}$/, "a name of 1 to 32 lower-case letters, digits, '_' or '-'"),
  pattern: text(1, 500).superRefine((source, ctx) => {
    const made = compilePattern(source)
    if (typeof made === 'string') ctx.addIssue({ code: 'custom', message: `this pattern cannot be used: ${made}` })
  }),
})

const privacy = z.strictObject({
  /** Absent: as the deployment is set. */
  retentionDays: int(1, 3650).optional(),
  storePrompts: z.boolean().default(true),
  /** Replaced before a provider is asked and before anything is kept. */
  redact: z
    .array(
      z.union([personalData, ownPattern], {
        error: expected("one of 'email', 'phone', 'card', 'iban', 'ssn', 'ip', or an object with name and pattern"),
      }),
    )
    .max(32)
    .default([]),
})

const subAgent = z.strictObject({ name: agentName, description: text(0, 4096).optional() })

/** Says which of two equal entries is one too many; two entries of one name would leave the first without effect. */
function onlyOnce<K extends string>(key: K) {
  return (items: readonly { readonly [name in K]: string }[], ctx: z.core.$RefinementCtx): void => {
    const seen = new Set<string>()
    items.forEach((item, at) => {
      if (seen.has(item[key]))
        ctx.addIssue({ code: 'custom', path: [at, key], message: `'${item[key]}' is listed twice` })
      seen.add(item[key])
    })
  }
}

/** docs/spec/runtime.md §3. Parsing gives the normalised manifest: every default written out, ready to be hashed. */
export const manifest = named(
  'Manifest',
  z
    .strictObject(
      {
        systemPrompt: text(0, 200_000).default(''),
        model: model.prefault('auto'),
        isolation: isolation.prefault('shared'),
        /** Of its sandboxes. Absent: the node's usual one. */
        image: imageName.optional(),
        limits: limits.prefault({}),
        egress: z.array(egressRule).max(100).default([]),
        tools: z.array(toolEntry).superRefine(onlyOnce('name')).default([]),
        connectors: z.array(connectorEntry).default([]),
        mcpServers: mcpServers.superRefine(onlyOnce('name')).default([]),
        subAgents: z.array(subAgent).superRefine(onlyOnce('name')).default([]),
        inputSchema: objectSchema('inputSchema').optional(),
        outputSchema: objectSchema('outputSchema').optional(),
        outputRepairs: int(0, 5).default(2),
        retry: retry.prefault({}),
        /** Absent: off. */
        confidence: confidence.optional(),
        approvals: approvals.prefault({}),
        anomalies: anomalies.prefault({}),
        session: session.prefault({}),
        entrypoint: entrypoint.optional(),
        files: files.superRefine(onlyOnce('path')).default([]),
        secrets: secrets.superRefine(onlyOnce('env')).default([]),
        privacy: privacy.prefault({}),
      },
      { error: expected('an object') },
    )
    .superRefine((value, ctx) => {
      const tools = value.tools.map(tool => tool.name)
      for (const name of toolsRefusedBy(value.isolation, tools))
        ctx.addIssue({
          code: 'custom',
          path: ['tools', tools.indexOf(name), 'name'],
          message: `${name} cannot run with isolation ${value.isolation}; declare microvm or drop the tool`,
        })
      if (value.isolation === 'wasm')
        for (const { path, message } of refusedInWasm(value)) ctx.addIssue({ code: 'custom', path, message })
    }),
)

/** The normalised form. */
export type Manifest = z.output<typeof manifest>
/** What a client may send. */
export type ManifestInput = z.input<typeof manifest>
