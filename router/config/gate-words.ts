import type { GateKind, GateTable } from './gate-table.ts'
import type { KeyWords, Words } from './key-words.ts'

type Common = Exclude<keyof GateTable<'non-empty'>, 'accept_tool_calls' | 'refusal' | 'min_chars'>

export const gateCommonWords: Readonly<Record<Common, KeyWords>> = {
  id: 'The name that routes use.',
  kind: 'What it does: one of the kinds below.',
  on_abstain: 'What a gate that cannot say anything counts as: passed (`fail-open`) or failed (`fail-closed`).',
  timeout_ms: { about: 'Time for one run.', unset: '1000 for the first six kinds, 30000 for the others' },
  cost_usd: 'What one run costs, beside what it reports itself.',
  error_budget: { about: 'When a gate that does not work is switched off.', unset: 'the defaults of its keys' },
  max_parallel: 'Runs at a time.',
}

export const errorBudgetWords: Words<GateTable['error_budget']> = {
  window: 'The latest runs that are looked at.',
  min_runs: 'Fewer runs prove nothing.',
  max_error: 'The share of errors that is still accepted.',
  probe_after_s: 'Seconds before a gate that is off is tried again.',
  probes: 'Good tries in a row that bring it back.',
}

const FENCES = 'Whether JSON in a fenced block counts.'
const ON_TOOL_CALL = 'What an answer with a tool call counts as.'

type OfKinds = { readonly [K in GateKind]: { about: string; keys: Words<Omit<GateTable<K>, Common>> } }

export const gateWords: OfKinds = {
  'non-empty': {
    about: 'The answer says something.',
    keys: {
      accept_tool_calls: 'Whether a tool call is enough.',
      refusal: 'What a refusal of the model counts as.',
      min_chars: 'The fewest characters of text.',
    },
  },
  'json-valid': {
    about: 'The answer is JSON.',
    keys: { fences: FENCES, on_tool_call: ON_TOOL_CALL },
  },
  schema: {
    about: 'The answer is JSON of a schema. One of `schema` and `file` is needed.',
    keys: {
      schema: { about: 'The schema, as a table: JSON Schema 2020-12 or draft-07.', unset: '`file`' },
      file: { about: 'The file that holds the schema, relative to the config.', unset: '`schema`' },
      fences: FENCES,
      on_tool_call: ON_TOOL_CALL,
    },
  },
  'tool-args': {
    about: "Each tool call names a tool of the request and has arguments that the tool's schema takes.",
    keys: {
      allow: { about: 'The only tools that may be called.', unset: 'all' },
      deny: { about: 'Tools that may not be called.', unset: 'none' },
      require_known: 'Whether a tool that the request does not have fails.',
    },
  },
  regex: {
    about: 'The text matches patterns, or does not. One pattern at least is needed.',
    keys: {
      must: 'Patterns that must match.',
      must_not: 'Patterns that must not match.',
      flags: 'Flags of the patterns: some of i, m, s and one of u, v.',
      window: { about: 'Looks at the first so many characters only.', unset: 'all of them' },
    },
  },
  length: {
    about: 'The text is within bounds. One bound at least is needed; a token is four bytes.',
    keys: {
      min_chars: { about: 'The fewest characters.', unset: 'no bound' },
      max_chars: { about: 'The most characters.', unset: 'no bound' },
      min_tokens: { about: 'The fewest tokens.', unset: 'no bound' },
      max_tokens: { about: 'The most tokens.', unset: 'no bound' },
    },
  },
  subprocess: {
    about:
      'A program of yours judges the answer. It gets the variables PATH, LANG, TZ, TMPDIR, HOME and `ROUTER_GATE_ID`.',
    keys: {
      cmd: 'The program and its arguments.',
      cwd: { about: 'The folder that it runs in.', unset: "the router's" },
      env_pass: 'Other variables that it gets.',
      stdin: 'What it reads: a JSON document with request and answer, or the text of the answer.',
    },
  },
  http: {
    about: 'A service of yours judges the answer.',
    keys: {
      url: 'Where it is. Plain `http` may be used where no header carries a secret.',
      headers_env: 'Headers, each with the variable that holds its value.',
      method: 'The method of the call.',
    },
  },
  function: {
    about: 'A function of the process that has the router as a library judges the answer.',
    keys: { name: 'The name under which `createRouter` was given it.' },
  },
  judge: {
    about: 'A model grades the answer. It never grades its own.',
    keys: {
      model: 'The model that grades. It must have a price.',
      rubric: 'What it is to look for.',
      threshold: 'The lowest grade that passes.',
      include_request: 'Whether it sees the request.',
      max_output_tokens: 'The longest grading.',
      fallback_model: { about: 'Who grades what the first model wrote.', unset: 'the gate abstains' },
    },
  },
  consistency: {
    about: 'The request is answered several times, and the answers must agree.',
    keys: {
      k: 'How many answers are compared.',
      threshold: 'The lowest agreement that passes.',
      model: { about: 'The model that answers again.', unset: 'that of the rung' },
    },
  },
}
