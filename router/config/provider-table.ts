import { z } from 'zod'
import { efforts, limitNames, samplings, thinkingForms } from '../../shared/models/model-table.ts'
import { expected, text } from '../../shared/wire/bounds.ts'
import { providerDialects } from '../../shared/wire/router/conventions.ts'
import { timeoutKeys } from './service-tables.ts'
import { choice, envName, flag, id, modelRef, uniqueList, whole } from './table-fields.ts'

const providerAuths = ['passthrough', 'env', 'none', 'sigv4', 'oauth', 'entra'] as const

/** docs/spec/router.md §6.6. `dialect` and `base_url` are required for a provider that is not built in. */
export const providerTable = z.strictObject({
  id,
  dialect: choice(providerDialects).optional(),
  base_url: text(1, 2048).optional(),
  auth: choice(providerAuths).optional(),
  api_key_env: envName.optional(),
  auth_header: text(1, 256).optional(),
  region: text(1, 64).optional(),
  service: text(1, 64).optional(),
  project: text(1, 128).optional(),
  token_url: text(1, 2048).optional(),
  credentials_env: envName.optional(),
  api_version: text(1, 64).optional(),
  headers: z.record(text(1, 256), text(0, 8192), { error: expected('a table of header names and values') }).optional(),
  responses: flag.optional(),
  inject_usage: flag.optional(),
  allow_http: flag.optional(),
  legacy_max_tokens: flag.optional(),
  timeouts: z.strictObject(timeoutKeys, { error: expected('a table') }).optional(),
})
export type ProviderTable = z.output<typeof providerTable>

/** What a model takes in a request, over what the model table says of it. */
const acceptsTable = z.strictObject(
  {
    thinking: uniqueList(choice(thinkingForms)).optional(),
    efforts: uniqueList(choice(efforts)).optional(),
    sampling: choice(samplings).optional(),
    context_management: flag.optional(),
    structured_output: flag.optional(),
    verbosity: flag.optional(),
    system_turns: flag.optional(),
    long_cache: flag.optional(),
    limit_name: choice(limitNames).optional(),
  },
  { error: expected('a table') },
)
export type AcceptsTable = z.output<typeof acceptsTable>

/** docs/spec/router.md §6.3: abilities and the wire name of a model. */
export const modelTable = z.strictObject({
  id: modelRef,
  tools: flag.optional(),
  images: flag.optional(),
  max_input_tokens: whole(1, 1_000_000_000).optional(),
  max_output_tokens: whole(1, 10_000_000).optional(),
  upstream_model: text(1, 512).optional(),
  accepts: acceptsTable.optional(),
})
export type ModelTable = z.output<typeof modelTable>
