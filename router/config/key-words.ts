import type { BudgetTable } from './budget-table.ts'
import type { CalibrationTable, LearningTable } from './learning-tables.ts'
import type { PriceTable, PricingTable } from './price-table.ts'
import type { AcceptsTable, ModelTable, ProviderTable } from './provider-table.ts'
import type { LimitsTable, StoreTable, StreamTable } from './service-tables.ts'

/** What docs/settings.md says of a key: what it does, and what holds without it where the schema has no default to show. */
export type KeyWords = string | { about: string; unset: string }

/** One entry for each key of a table, no more and no less. */
export type Words<Table> = Readonly<Record<keyof Table & string, KeyWords>>

export const providerWords: Words<ProviderTable> = {
  id: 'The name that models begin with. `anthropic` and `openai` are built in and may be changed.',
  dialect: { about: 'What the provider speaks.', unset: 'required, except for the two built-in providers' },
  base_url: {
    about:
      'Where it is, as its vendor gives it to clients. `/v1` is added where it names no version; the address of a chat host that has none (GitHub Models, Databricks, Perplexity) is given with its `/chat/completions`. Plain `http` goes to this machine only.',
    unset: 'required, except for the two built-in providers',
  },
  auth: {
    about:
      "Whose key a call carries: the client's (`passthrough`), one from a variable (`env`), none, or a proof for a cloud host: a signature of AWS (`sigv4`), a token of Google (`oauth`) or of Microsoft Entra (`entra`). [The router](router.md#cloud-hosts) says where they come from.",
    unset: '`env` with `api_key_env`, else `passthrough` for a provider that is built in and `none` for another',
  },
  api_key_env: { about: 'The variable that holds the key.', unset: 'that of a provider that is built in' },
  auth_header: {
    about: 'The header that carries the key.',
    unset: '`x-api-key` for messages, `authorization` for chat',
  },
  region: { about: 'The region to sign for or to call.', unset: 'required with `sigv4` and `oauth`' },
  service: { about: 'The service that `sigv4` signs for.', unset: '`bedrock`' },
  project: { about: 'The project that `oauth` calls.', unset: 'required with `oauth`' },
  token_url: { about: 'Where `oauth` gets its tokens.', unset: "that of the account, else Google's" },
  credentials_env: {
    about:
      'The variable that holds the credentials of `oauth`, as JSON: a service account, a user or an external account.',
    unset: "Google's application default credentials",
  },
  api_version: {
    about:
      'The `api-version` of Azure OpenAI. With it models are called under `/openai/deployments/<upstream_model>/`, and a key goes in `api-key`.',
    unset: 'models are called by their names, as at `/openai/v1`',
  },
  headers: { about: 'Headers for every call. None of them may carry a key.', unset: 'none' },
  responses: {
    about: 'Whether a chat provider takes the Responses API (`/v1/responses`) at the same address.',
    unset: '`true` for `openai`, else `false`',
  },
  inject_usage: {
    about: 'Asks a chat provider for usage on streams, and keeps what comes of it from the client.',
    unset: '`false`',
  },
  allow_http: { about: 'Allows plain `http` to another machine.', unset: '`false`' },
  legacy_max_tokens: { about: 'Sends `max_tokens` in place of `max_completion_tokens`.', unset: '`false`' },
  timeouts: { about: 'Time limits of this provider; the keys are those of `[limits]`.', unset: '`[limits]`' },
}

export const timeoutWords: Words<NonNullable<ProviderTable['timeouts']>> = {
  connect_ms: { about: 'Time to connect.', unset: '`[limits]`' },
  first_byte_ms: { about: 'Time until the first byte of the answer.', unset: '`[limits]`' },
  idle_ms: { about: 'Time without a byte.', unset: '`[limits]`' },
  content_ms: { about: 'Time of a stream without a word.', unset: '`[limits]`' },
  total_ms: { about: 'Time for the whole call.', unset: '`[limits]`' },
}

export const modelWords: Words<ModelTable> = {
  id: 'The model, as ladders name it.',
  tools: { about: 'Whether it takes tools.', unset: '`true`' },
  images: { about: 'Whether it takes images.', unset: '`true`' },
  max_input_tokens: { about: 'Requests that may be longer skip it.', unset: 'no bound' },
  max_output_tokens: {
    about: 'Its output where the request names no limit. A request for more is brought down to it (`adapt`).',
    unset: '`8192`, and the model table bounds requests',
  },
  upstream_model: { about: 'The name that the provider knows it by.', unset: 'what follows the first slash of `id`' },
  accepts: { about: 'What it takes in a request.', unset: 'what the model table says' },
}

const BY_TABLE = 'by the model table'

export const acceptsWords: Words<AcceptsTable> = {
  thinking: { about: 'The values of `thinking.type` that it takes, in messages.', unset: BY_TABLE },
  efforts: { about: 'The efforts that it takes; `[]` for a model without such a setting.', unset: BY_TABLE },
  sampling: {
    about:
      'Whether `temperature` and `top_p` may be set: `any`, only `one` of them, only to their `default`, or `without_effort`.',
    unset: BY_TABLE,
  },
  context_management: { about: 'Whether it takes `context_management`.', unset: BY_TABLE },
  structured_output: { about: 'Whether it takes a schema for its answer.', unset: BY_TABLE },
  verbosity: { about: 'Whether it takes `verbosity`.', unset: BY_TABLE },
  system_turns: {
    about: 'Whether messages of the `system` role may stand among the turns, in messages.',
    unset: BY_TABLE,
  },
  long_cache: { about: 'Whether a cache entry may live for an hour.', unset: BY_TABLE },
  limit_name: { about: 'The one name that it knows for the limit of the output, in chat.', unset: BY_TABLE },
}

export const priceWords: Words<PriceTable> = {
  model: 'The model that costs this.',
  input_per_mtok: 'USD for a million input tokens.',
  output_per_mtok: 'USD for a million output tokens.',
  cache_write_5m_per_mtok: {
    about: 'USD for a million tokens written to a cache for five minutes.',
    unset: 'a factor of the input price',
  },
  cache_write_1h_per_mtok: { about: 'The same for an hour.', unset: 'a factor of the input price' },
  cache_read_per_mtok: { about: 'USD for a million tokens read from a cache.', unset: 'a factor of the input price' },
  per_call_usd: { about: 'USD for each call, beside its tokens.', unset: 'none' },
  per_web_search_usd: {
    about: "USD for one of the provider's own searches.",
    unset: '0.01 in messages, 0.025 in chat',
  },
  tiers: { about: 'Other prices for long inputs, the shortest first.', unset: 'none' },
}

type Tier = NonNullable<PriceTable['tiers']>[number]

export const tierWords: Words<Tier> = {
  above_input_tokens: 'The tier holds for inputs above so many tokens.',
  input_per_mtok: 'As above.',
  output_per_mtok: 'As above.',
  cache_write_5m_per_mtok: { about: 'As above.', unset: 'a factor of the input price' },
  cache_write_1h_per_mtok: { about: 'As above.', unset: 'a factor of the input price' },
  cache_read_per_mtok: { about: 'As above.', unset: 'a factor of the input price' },
}

export const pricingWords: Words<PricingTable> = {
  builtin: 'Whether the price table that comes along is used for models without a `[[price]]`.',
  unpriced:
    'What a ladder with a model without a price is: `refuse` refuses the config, `null` leaves its cost unknown, and no budget holds it.',
}

export const budgetWords: Words<BudgetTable> = {
  per_request_usd: { about: 'Cap of one request.', unset: 'no cap' },
  per_session_usd: { about: 'Cap of one session.', unset: 'no cap' },
  per_day_usd: {
    about: 'Cap of a day (UTC): of the process, of the route or of the tenant, by where it stands.',
    unset: 'no cap',
  },
  per_tenant_day_usd: { about: 'Cap of a day for each tenant.', unset: 'no cap' },
  tokens_per_byte: { about: 'Tokens that a byte of text counts as before a call.', unset: '`0.5`' },
  media_token_bound: {
    about:
      'Tokens that an image, a document or a sound counts as before a call; a document that is sent whole counts its bytes as well.',
    unset: '`5000`',
  },
  on_exhausted: {
    about:
      "When a cap ends the climb: `serve_best` serves the best answer so far, `error` is a 402. In a tenant's table it has no effect.",
    unset: "the route's",
  },
}

export const calibrationWords: Words<CalibrationTable> = {
  alpha: 'The share of served answers that may fail.',
  delta: 'How often the claim about that share may be wrong.',
  gamma: 'How far one outcome moves the threshold.',
  min_n: 'Groups of fewer outcomes are not tested.',
  window: 'Outcomes that are kept for each route.',
  feedback_delay_s:
    'How long after an answer its failure may still be reported. An outcome counts for the certificate once its answer is this old.',
  method: 'How the threshold is found.',
  initial: 'The threshold before anything is known.',
  bet: 'The stake of the running test; at most 0.5 / (1 - alpha).',
}

export const learningWords: Words<LearningTable> = {
  algorithm: 'How the start rung is learned; `off` starts where the route says.',
  epsilon: 'The share of starts that are drawn to learn from.',
  discount: 'What an outcome still counts for once the next one is there.',
  min_observations: 'Outcomes before anything learned is used.',
  max_step: 'How many rungs above `start_rung` a learned start may be.',
  ucb_c: 'How much `ucb` favours rungs that it knows little of.',
}

export const streamWords: Words<StreamTable> = {
  keepalive_after_ms: 'How late an answer is before the first keep-alive.',
  keepalive_every_ms: 'How often keep-alives follow.',
}

export const limitsWords: Words<LimitsTable> = {
  max_body_bytes: 'The longest request.',
  max_response_bytes: 'The longest answer of a provider.',
  max_concurrency:
    'Requests at a time; one more is a 503. With keys of several tenants, a tenant has at most seven times what is left free.',
  max_held_bytes: {
    about:
      'Bytes of requests, and of answers that wait for their gates or their clients, held at a time, at least `max_body_bytes`, and shared among tenants as `max_concurrency`. A call that has no room is a 503. Without a config it is passed on, and its receipt has hash and size of the request alone.',
    unset: 'an eighth of the memory, at least 64 MiB',
  },
  connect_ms: 'Time to connect to a provider.',
  first_byte_ms: 'Time until the first byte of its answer.',
  idle_ms: 'Time without a byte.',
  content_ms: 'Time of a stream without a word, in enforce: comments, pings and empty pieces are none.',
  total_ms: 'Time for the whole call, in enforce.',
  observe_total_ms:
    'Time for the whole call, in observe. `0` sets no limit: a stream goes on while bytes come and its client stays.',
  max_retry_wait_s: 'The longest `retry-after` of a provider that is waited for.',
}

export const storeWords: Words<StoreTable> = {
  queue: 'Receipts that may wait to be written.',
  batch: 'Receipts in one write.',
  flush_ms: 'How long a receipt waits for others to be written with.',
  checkpoint_records: 'Receipts between two checkpoints.',
  checkpoint_seconds: 'Seconds between two checkpoints.',
  retention_days: 'After so many days traces are deleted. `0` keeps them all.',
  store_reasons: 'Whether the reasons of gates are stored along.',
}
