import { z } from 'zod'
import { expected, int, num, shape, text } from '../bounds.ts'
import { named } from '../schema-names.ts'
import { timestamp } from './conventions.ts'
import { hostRule } from './host-rule.ts'
import { isProvider, modelAliases, modelName, type ProviderId } from './model-name.ts'

const provider = z.string({ error: expected('a provider id') }).refine(isProvider, {
  error:
    'expected one of anthropic, openai, google, openai-compatible, openai-compatible:<name>, bedrock, vertex, router, demo',
})

const required: Record<string, readonly ('apiKey' | 'baseUrl' | 'region' | 'project' | 'location')[]> = {
  anthropic: ['apiKey'],
  openai: ['apiKey'],
  google: ['apiKey'],
  bedrock: ['apiKey', 'region'],
  vertex: ['apiKey', 'project', 'location'],
  router: ['baseUrl'],
  demo: [],
}

/** The fields that a provider cannot do without (docs/spec/runtime.md §10). */
export const fieldsNeededBy = (id: ProviderId) =>
  id.startsWith('openai-compatible') ? (['baseUrl'] as const) : (required[id] ?? [])

export const providerSave = named(
  'ProviderSave',
  z
    .strictObject({
      provider,
      /** Write-only. */
      apiKey: text(1, 65_536).optional(),
      baseUrl: z.url({ protocol: /^https?$/, error: expected('an http or https URL') }).optional(),
      region: shape(/^[a-z0-9-]{1,64}$/, 'a region such as eu-west-1').optional(),
      project: text(1, 128).optional(),
      location: shape(/^[a-z0-9-]{1,64}$/, 'a location such as europe-west4').optional(),
      headers: z.record(text(1, 128), text(0, 8192)).optional(),
    })
    .superRefine((given, ctx) => {
      if (!isProvider(given.provider)) return
      for (const field of fieldsNeededBy(given.provider))
        if (given[field] === undefined) ctx.addIssue({ code: 'custom', path: [field], message: 'Required' })
    }),
)
export type ProviderSave = z.infer<typeof providerSave>

export const providerSaved = named(
  'ProviderSaved',
  z.object({
    provider: z.string(),
    configured: z.literal(true),
    status: z.literal('saved'),
    baseUrl: z.string().optional(),
  }),
)
export type ProviderSaved = z.infer<typeof providerSaved>

export const providerItem = named(
  'Provider',
  z.object({
    provider: z.string(),
    configured: z.literal(true),
    source: z.enum(['stored', 'environment']),
    baseUrl: z.string().optional(),
    /** The last four characters of keys over 19. */
    keyHint: z.string().optional(),
    lastTest: z.object({ at: timestamp, success: z.boolean() }).optional(),
    createdAt: timestamp,
    updatedAt: timestamp,
  }),
)
export type ProviderItem = z.infer<typeof providerItem>

export const providerTest = named('ProviderTest', z.strictObject({ model: text(1, 200).optional() }).prefault({}))
export const providerParams = z.object({ provider: text(1, 128) })

export const providerTested = named(
  'ProviderTested',
  z.discriminatedUnion('success', [
    z.object({
      success: z.literal(true),
      provider: z.string(),
      model: z.string(),
      latencyMs: z.number().min(0),
      message: z.string(),
    }),
    z.object({ success: z.literal(false), provider: z.string(), error: z.string() }),
  ]),
)
export type ProviderTested = z.infer<typeof providerTested>

const aliasName = z.enum(['auto', ...modelAliases])
const candidate = z
  .string()
  .refine(value => modelName(value)?.kind === 'model', { error: 'expected <provider>/<model>' })

export const modelSettings = named(
  'ModelSettings',
  z.strictObject({
    /** Ordered: the first candidate that is configured is asked, and the next one where that one is busy, faulty or away. */
    aliases: z.partialRecord(aliasName, z.array(candidate)).default({}),
    prices: z.record(candidate, z.strictObject({ inPerMTok: num(0, 10_000), outPerMTok: num(0, 10_000) })).default({}),
    /** Tokens that fit into one call, where the built-in table does not know it: conversations are shortened in time. */
    windows: z.partialRecord(candidate, int(1024, 100_000_000)).default({}),
  }),
)
export type ModelSettings = z.output<typeof modelSettings>

export const secretName = shape(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, "1 to 128 letters, digits, '.', '_' or '-'")
export const secretParams = z.object({ name: secretName })
export const secretValue = text(1, 65_536)

/** What may open a secret: `mcp` the headers of an MCP server, `sandbox` the environment of whatever runs in a sandbox. */
export const secretTools = ['mcp', 'sandbox'] as const
const secretTool = z.enum(secretTools, { error: expected(`one of ${secretTools.join(', ')}`) })
const hosts = z.array(hostRule).min(1).max(100)
const tools = z.array(secretTool).min(1).max(secretTools.length)

/** Where a secret may go and what may open it; absent: anywhere, and every use of the tenant's agents. */
export const secretBinding = z.object({ hosts: hosts.optional(), tools: tools.optional() })
export type SecretBinding = z.output<typeof secretBinding>

/** `null` lifts a part of the binding; absent leaves it as it is. */
export const secretBindingChange = { hosts: hosts.nullable().optional(), tools: tools.nullable().optional() }
export type SecretBindingChange = Pick<SecretPut, 'hosts' | 'tools'>

export const secretPut = named(
  'SecretPut',
  z
    .strictObject({
      /** Write-only; absent leaves it as it is. */
      value: secretValue.optional(),
      ...secretBindingChange,
    })
    .superRefine(({ value, hosts, tools }, ctx) => {
      if (value === undefined && hosts === undefined && tools === undefined)
        ctx.addIssue({ code: 'custom', path: ['value'], message: 'Required, unless hosts or tools are sent' })
    }),
)
export type SecretPut = z.output<typeof secretPut>
export const secretItem = named('Secret', secretBinding.extend({ name: z.string(), updatedAt: timestamp }))
export type SecretItem = z.infer<typeof secretItem>
