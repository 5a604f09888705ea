import { describe, expect, it } from 'vitest'
import { gateKinds } from '../gates/gate-kinds.ts'
import { type LoadOptions, loadConfig } from './load-config.ts'
import { formatProblem } from './problem.ts'

const lines = (source: string | object, options: Partial<LoadOptions> = {}): string[] => {
  const result = loadConfig(source, { file: 'r.toml', hostHasProcesses: true, ...options })
  return result.ok ? [] : result.problems.map(formatProblem)
}

const LADDER = `[pricing]
unpriced = "null"
[[route]]
ladder = ["openai/small", "openai/large"]
`
const gate = (text: string) => `[[gate]]\nid = "g"\n${text}`
const provider = (text: string) => `[[provider]]\nid = "p"\ndialect = "chat"\n${text}`

/** Every kind of problem with the one line it prints. */
const CASES: [name: string, text: string, line: string, options?: Partial<LoadOptions>][] = [
  ['a syntax error', 'version = 1\nb = = 2\n', 'r.toml:2:5: not TOML: invalid value'],
  [
    'a table defined twice',
    '[budget]\n[budget]\n',
    'r.toml:2:2: not TOML: trying to redefine an already defined table or value',
  ],
  [
    'an unknown key',
    '[[route]]\ngatez = []\n',
    'r.toml:2:1: unknown key "gatez" in [[route]] #1 - did you mean "gates"?',
  ],
  ['an unknown table', '[learnin]\n', 'r.toml:1:2: unknown key "learnin" at the top level - did you mean "learning"?'],
  ['a key like no other', 'zebra = 1\n', 'r.toml:1:1: unknown key "zebra" at the top level'],
  [
    'an unknown key of an inline table',
    'route = [\n  { match = { agnt = "x" } },\n]\n',
    'r.toml:2:15: unknown key "agnt" in match of [[route]] #1 - did you mean "agent"?',
  ],
  [
    'an unknown key in a quoted, dotted path',
    '[tenant."acme".budget]\nper_day_us = 1\n',
    'r.toml:2:1: unknown key "per_day_us" in [tenant.acme.budget] - did you mean "per_day_usd"?',
  ],
  [
    'another version',
    'version = 2\n',
    'r.toml:1:11: "version" at the top level: expected 1, the only version there is',
  ],
  ['a table for a list', '[route]\n', 'r.toml:1:1: "route" at the top level: expected [[route]], an array of tables'],
  ['a value for a table', 'stream = 3\n', 'r.toml:1:10: "stream" at the top level: expected a table'],
  ['an item that is no table', 'gate = ["x"]\n', 'r.toml:1:9: [[gate]] #1: expected a table'],
  [
    'a wrong type',
    `${LADDER}start_rung = "0"\n`,
    'r.toml:5:14: "start_rung" in [[route]] #1: expected a whole number from 0 to 15',
  ],
  [
    'a value out of range',
    `${LADDER}max_attempts = 33\n`,
    'r.toml:5:16: "max_attempts" in [[route]] #1: expected a whole number from 1 to 32, got 33',
  ],
  [
    'a misspelt choice',
    '[[route]]\nprofile = "qualtiy"\n',
    'r.toml:2:11: "profile" in [[route]] #1: expected "cost", "balanced", "quality", "latency" or "max" - did you mean "quality"?',
  ],
  [
    'an item of a list',
    '[[route]]\nheader_modes = ["cost", "fast"]\n',
    'r.toml:2:25: "header_modes" #2 in [[route]] #1: expected "observe", "enforce", "cost", "balanced", "quality", "latency" or "max"',
  ],
  [
    'an item listed twice',
    '[[route]]\nheader_modes = ["cost", "cost"]\n',
    'r.toml:2:25: "header_modes" #2 in [[route]] #1: "cost" is listed twice',
  ],
  [
    'a date where a number belongs',
    '[limits]\ntotal_ms = 1979-05-27\n',
    'r.toml:2:12: "total_ms" in [limits]: expected a whole number from 1 to 3600000',
  ],
  [
    'a budget of nothing',
    '[budget]\nper_day_usd = 0\n',
    'r.toml:2:15: "per_day_usd" in [budget]: expected a number of dollars above 0, up to 1000000',
  ],
  ['a match in [defaults]', '[defaults]\nmatch = {}\n', 'r.toml:2:1: unknown key "match" in [defaults]'],
  [
    'a tenant that no key can have',
    '[tenant."a b"]\n',
    `r.toml:1:9: "a b" in [tenant]: expected a tenant of 1 to 64 letters, digits, '.', '_' or '-'`,
  ],
  [
    'an impossible bet',
    '[calibration]\nbet = 0.9\n',
    'r.toml:2:7: "bet" in [calibration]: expected at most 0.5 / (1 - alpha), which is 0.5556, got 0.9',
  ],

  [
    'enforce without a ladder',
    '[[route]]\nmode = "enforce"\n',
    'r.toml:2:8: [[route]] #1: mode "enforce" needs a ladder',
  ],
  [
    'enforce by the environment without a ladder',
    '\n[[route]]\n',
    'r.toml:2:1: [[route]] #1 needs a ladder or mode = "observe": ROUTER_MODE is enforce',
    { env: { ROUTER_MODE: 'enforce' } },
  ],
  [
    'enforce without a config',
    '',
    'ROUTER_MODE: enforce needs a routing config with a [[route]] that has a ladder',
    { env: { ROUTER_MODE: 'enforce' } },
  ],
  ['a mode there is not', '', 'ROUTER_MODE: expected observe or enforce', { env: { ROUTER_MODE: 'on' } }],
  [
    'an upstream that is no address',
    '',
    'ROUTER_UPSTREAM_CHAT: expected an https address',
    { env: { ROUTER_UPSTREAM_CHAT: 'api.openai.com' } },
  ],
  [
    'a rung that is no model',
    '[[route]]\nladder = [\n  "gpt-5"]\n',
    'r.toml:3:3: "ladder" #1 in [[route]] #1: expected "provider/model"',
  ],
  [
    'an unknown provider',
    '[[route]]\nladder = ["opnai/x"]\n',
    'r.toml:2:11: "ladder" #1 in [[route]] #1: unknown provider "opnai" - did you mean "openai"?',
  ],
  [
    'an unknown provider like no other',
    '[[route]]\nladder = ["zebra/x"]\n',
    'r.toml:2:11: "ladder" #1 in [[route]] #1: unknown provider "zebra": add a [[provider]] for it',
  ],
  [
    'a rung twice',
    '[pricing]\nunpriced = "null"\n[[route]]\nladder = ["openai/x", "openai/x"]\n',
    'r.toml:4:23: "ladder" #2 in [[route]] #1: "openai/x" is listed twice',
  ],
  [
    'too many rungs',
    `[pricing]\nunpriced = "null"\n[[route]]\nladder = [${Array.from({ length: 17 }, (_, i) => `"openai/m${i}"`).join(', ')}]\n`,
    'r.toml:4:10: "ladder" in [[route]] #1: expected at most 16 rungs, got 17',
  ],
  [
    'an unknown gate',
    '[[route]]\ngates = ["non-emty"]\n',
    'r.toml:2:10: "gates" #1 in [[route]] #1: unknown gate "non-emty" - did you mean "non-empty"?',
  ],
  [
    'an unknown gate of [defaults]',
    'defaults = { gates = ["x"] }\n[[route]]\nmatch = { agent = "a" }\n[[route]]\n',
    'r.toml:1:23: "gates" #1 in [defaults]: unknown gate "x"',
  ],
  [
    'an unknown gate of [defaults] that no route takes',
    'defaults = { gates = ["x"] }\n[[route]]\ngates = ["non-empty"]\n',
    'r.toml:1:23: "gates" #1 in [defaults]: unknown gate "x"',
  ],
  [
    'a start past the top',
    `${LADDER}start_rung = 2\n`,
    'r.toml:5:14: "start_rung" in [[route]] #1: expected a rung of the ladder, got 2, but [[route]] #1 has rungs 0 to 1',
  ],
  [
    'a start of [defaults] past the top of one route',
    `defaults = { strong_rung = 5 }\n${LADDER}`,
    'r.toml:1:28: "strong_rung" in [defaults]: expected a rung of the ladder, got 5, but [[route]] #1 has rungs 0 to 1',
  ],
  [
    'a route behind one that takes everything',
    '[[route]]\n\n[[route]]\nmatch = { agent = "x" }\n',
    'r.toml:3:1: [[route]] #2 can never match: [[route]] #1 (line 1) before it matches everything',
  ],
  [
    'a route with the match of an earlier one',
    '[[route]]\nmatch = { task = ["A", "b"], stream = true }\n[[route]]\n[route.match]\nstream = true\ntask = ["b", "a"]\n',
    'r.toml:3:1: [[route]] #2 can never match: [[route]] #1 (line 1) before it has the same match',
  ],
  [
    'body bounds the wrong way round',
    '[[route]]\nmatch = { min_body_bytes = 9, max_body_bytes = 8 }\n',
    'r.toml:2:48: "max_body_bytes" in match of [[route]] #1: expected at least min_body_bytes, which is 9',
  ],
  [
    'a match on a key header',
    '[[route]]\nmatch = { header = { X-Api-Key = "*" } }\n',
    'r.toml:2:22: "X-Api-Key" in match.header of [[route]] #1: this header carries a key, and routes never look at keys',
  ],
  [
    'an api that is none',
    '[[route]]\nmatch = { api = ["chat", "mesages"] }\n',
    'r.toml:2:26: "api" #2 in match of [[route]] #1: none of messages, chat, responses matches "mesages" - did you mean "messages"?',
  ],

  [
    'an unpriced rung',
    '[[route]]\nladder = ["openai/x"]\n',
    'r.toml:2:11: "ladder" #1 in [[route]] #1: no price for "openai/x": add a [[price]] for it, or set unpriced = "null" in [pricing]',
  ],
  [
    'an unpriced consistency model',
    gate('kind = "consistency"\nmodel = "openai/x"\n'),
    'r.toml:4:9: "model" in [[gate]] #1: no price for "openai/x": a model that is sampled must have a price, add a [[price]] for it',
  ],
  [
    'a sampled rung without a price',
    `[pricing]\nunpriced = "null"\n${gate('kind = "consistency"\n')}[[route]]\nladder = ["openai/x"]\ngates = ["g"]\n`,
    'r.toml:8:10: "gates" #1 in [[route]] #1: "g" samples "openai/x", and a model that is sampled must have a price: add a [[price]] for it',
  ],
  [
    'an unpriced judge, whatever [pricing] says',
    `[pricing]\nunpriced = "null"\n${gate('kind = "judge"\nmodel = "openai/x"\nrubric = "r"\n')}`,
    'r.toml:6:9: "model" in [[gate]] #1: no price for "openai/x": a judge must have a price, add a [[price]] for it',
  ],
  [
    'a price finer than 6 decimals',
    '[[price]]\nmodel = "openai/x"\ninput_per_mtok = 0.0000001\noutput_per_mtok = 1\n',
    'r.toml:3:18: "input_per_mtok" in [[price]] #1: expected a price from 0 to 10000 USD per million tokens with at most 6 decimals',
  ],
  [
    'a price without output',
    '[[price]]\nmodel = "openai/x"\ninput_per_mtok = 1\n',
    'r.toml:1:1: "output_per_mtok" is missing in [[price]] #1',
  ],
  [
    'a price twice',
    '[[price]]\nmodel = "openai/x"\ninput_per_mtok = 1\noutput_per_mtok = 1\n[[price]]\nmodel = "openai/x"\ninput_per_mtok = 1\noutput_per_mtok = 1\n',
    'r.toml:6:9: "model" in [[price]] #2: "openai/x" is already taken by [[price]] #1 (line 1)',
  ],
  [
    'a price of nobody',
    '[[price]]\nmodel = "opanai/x"\ninput_per_mtok = 1\noutput_per_mtok = 1\n',
    'r.toml:2:9: "model" in [[price]] #1: unknown provider "opanai" - did you mean "openai"?',
  ],
  [
    'tiers that fall',
    '[[price]]\nmodel = "openai/x"\ninput_per_mtok = 1\noutput_per_mtok = 1\ntiers = [\n{ above_input_tokens = 9, input_per_mtok = 1, output_per_mtok = 1 },\n{ above_input_tokens = 9, input_per_mtok = 1, output_per_mtok = 1 }]\n',
    'r.toml:7:24: "above_input_tokens" in tiers #2 of [[price]] #1: tiers rise, and the one before is above 9',
  ],
  [
    'a model twice',
    '[[model]]\nid = "openai/x"\n[[model]]\nid = "openai/x"\n',
    'r.toml:4:6: "id" in [[model]] #2: "openai/x" is already taken by [[model]] #1 (line 1)',
  ],

  ['a gate without a kind', '[[gate]]\nid = "g"\n', 'r.toml:1:1: "kind" is missing in [[gate]] #1'],
  [
    'a gate of no kind',
    gate('kind = "scheme"\n'),
    `r.toml:3:8: "kind" in [[gate]] #1: expected one of ${Object.keys(gateKinds).join(', ')} - did you mean "schema"?`,
  ],
  [
    'a key of another kind of gate',
    gate('kind = "length"\nmin_chars = 1\nrubric = "x"\n'),
    'r.toml:5:1: unknown key "rubric" in [[gate]] #1',
  ],
  [
    'a bad id',
    '[[gate]]\nid = "G 1"\nkind = "json-valid"\n',
    `r.toml:2:6: "id" in [[gate]] #1: expected 1 to 64 lower-case letters, digits, '.', '_' or '-'`,
  ],
  [
    'an id twice',
    `${gate('kind = "json-valid"\n')}[[gate]]\nkind = "tool-args"\nid = "g"\n`,
    'r.toml:6:6: "id" in [[gate]] #2: "g" is already taken by [[gate]] #1 (line 1)',
  ],
  [
    'an abstention that is neither',
    gate('kind = "json-valid"\non_abstain = "fail_close"\n'),
    'r.toml:4:14: "on_abstain" in [[gate]] #1: expected "fail-open" or "fail-closed" - did you mean "fail-closed"?',
  ],
  [
    'an error budget that cannot be',
    gate('kind = "json-valid"\nerror_budget = { max_error = 2 }\n'),
    'r.toml:4:30: "max_error" in error_budget of [[gate]] #1: expected a number from 0 to 1, got 2',
  ],
  [
    'a pattern that does not compile',
    gate('kind = "regex"\nmust = ["fine", "(a"]\n'),
    'r.toml:4:17: "must" #2 in [[gate]] #1: not a regular expression: unterminated group',
  ],
  [
    'flags that do not go together',
    gate('kind = "regex"\nmust = ["a"]\nflags = "uv"\n'),
    'r.toml:5:9: "flags" in [[gate]] #1: expected some of i, m, s and one of u, v, each once',
  ],
  [
    'a regex gate without a pattern',
    gate('kind = "regex"\n'),
    'r.toml:1:1: "must" in [[gate]] #1: a regex gate takes at least one pattern in "must" or "must_not"',
  ],
  [
    'a length gate without a bound',
    gate('kind = "length"\n'),
    'r.toml:1:1: "min_chars" in [[gate]] #1: a length gate takes at least one of min_chars, max_chars, min_tokens, max_tokens',
  ],
  [
    'length bounds the wrong way round',
    gate('kind = "length"\nmin_tokens = 5\nmax_tokens = 2\n'),
    'r.toml:5:14: "max_tokens" in [[gate]] #1: expected at least min_tokens, which is 5',
  ],
  [
    'a schema gate with neither',
    gate('kind = "schema"\n'),
    'r.toml:1:1: "schema" in [[gate]] #1: a schema gate takes "schema" or "file", one of them',
  ],
  [
    'a schema that is none',
    gate('kind = "schema"\n[gate.schema.properties.total]\ntype = "nubmer"\n'),
    'r.toml:5:8: "schema" in [[gate]] #1: properties.total.type: expected one of array, boolean, integer, null, number, object, string - did you mean "number"?',
  ],
  [
    'a schema that points elsewhere',
    gate('kind = "schema"\nschema = { "$ref" = "https://example.com/s" }\n'),
    'r.toml:4:21: "schema" in [[gate]] #1: $ref: "https://example.com/s" does not lead to a schema in this document',
  ],
  [
    'a schema file on a host without files',
    gate('kind = "schema"\nfile = "s.json"\n'),
    'r.toml:4:8: "file" in [[gate]] #1: this host cannot read files: write the schema into the config',
  ],
  [
    'a schema file that is not there',
    gate('kind = "schema"\nfile = "s.json"\n'),
    'r.toml:4:8: "file" in [[gate]] #1: cannot read "s.json": no such file',
    {
      readFile: () => {
        throw new Error('no such file')
      },
    },
  ],
  [
    'a schema file that is no schema',
    gate('kind = "schema"\nfile = "s.json"\n'),
    'r.toml:4:8: "file" in [[gate]] #1: required: expected an array of different names',
    { readFile: () => '{"required":"total"}' },
  ],
  [
    'a subprocess on a host without processes',
    gate('kind = "subprocess"\ncmd = ["x"]\n'),
    'r.toml:3:8: "kind" in [[gate]] #1: this host cannot start processes: use an http gate instead',
    { hostHasProcesses: false },
  ],
  [
    'a function nobody gave',
    gate('kind = "function"\nname = "chek"\n'),
    'r.toml:4:8: "name" in [[gate]] #1: createRouter was given no gate function "chek" - did you mean "check"?',
    { functions: ['check'] },
  ],
  [
    'an http gate that sends a secret in the clear',
    gate('kind = "http"\nurl = "http://gate:9000"\nheaders_env = { x-gate-key = "GATE_KEY" }\n'),
    'r.toml:4:7: "url" in [[gate]] #1: plain http goes to this machine only: use https',
  ],
  [
    'a gate at an address of another sort',
    gate('kind = "http"\nurl = "file:///etc/passwd"\n'),
    'r.toml:4:7: "url" in [[gate]] #1: expected an https address',
  ],
  [
    'a gate at an address with a password',
    gate('kind = "http"\nurl = "https://u:p@g/"\n'),
    'r.toml:4:7: "url" in [[gate]] #1: a user name or password has no place in the address',
  ],
  [
    'a secret where its variable belongs',
    gate('kind = "http"\nurl = "https://gate"\nheaders_env = { x-gate-key = "sk-secret" }\n'),
    'r.toml:5:30: "x-gate-key" in headers_env of [[gate]] #1: expected the name of an environment variable such as GROQ_API_KEY, never the key itself',
  ],
  [
    'a judge that is its own fallback',
    `[[price]]\nmodel = "openai/x"\ninput_per_mtok = 1\noutput_per_mtok = 1\n[[price]]\nmodel = "openai/x-latest"\ninput_per_mtok = 1\noutput_per_mtok = 1\n${gate('kind = "judge"\nmodel = "openai/x"\nfallback_model = "openai/x-latest"\nrubric = "r"\n')}`,
    'r.toml:13:18: "fallback_model" in [[gate]] #1: expected another model than "model": a fallback stands in where the judge wrote the answer',
  ],
  [
    'a judge that would only judge itself',
    `[[price]]\nmodel = "openai/x-2025-01-02"\ninput_per_mtok = 1\noutput_per_mtok = 1\n[[price]]\nmodel = "openai/x"\ninput_per_mtok = 1\noutput_per_mtok = 1\n${gate('kind = "judge"\nmodel = "openai/x"\nrubric = "r"\n')}[[route]]\nladder = ["openai/x-2025-01-02"]\ngates = ["g"]\n`,
    'r.toml:16:10: "gates" #1 in [[route]] #1: judge "g" is the only model of the ladder and never grades itself: give it a fallback_model',
  ],

  [
    'a judge that is the ladder under another name',
    `[[price]]\nmodel = "openai/x"\ninput_per_mtok = 1\noutput_per_mtok = 1\n[[price]]\nmodel = "openai/referee"\ninput_per_mtok = 1\noutput_per_mtok = 1\n[[model]]\nid = "openai/referee"\nupstream_model = "x"\n${gate('kind = "judge"\nmodel = "openai/referee"\nrubric = "r"\n')}[[route]]\nladder = ["openai/x"]\ngates = ["g"]\n`,
    'r.toml:19:10: "gates" #1 in [[route]] #1: judge "g" is the only model of the ladder and never grades itself: give it a fallback_model',
  ],

  [
    'a provider without an address',
    '[[provider]]\nid = "p"\ndialect = "chat"\n',
    'r.toml:1:1: "base_url" is missing in [[provider]] #1',
  ],
  [
    'plain http to another machine',
    provider('base_url = "http://example.com"\n'),
    'r.toml:4:12: "base_url" in [[provider]] #1: plain http goes to this machine only: use https, or set allow_http = true',
  ],
  [
    'an address that is none',
    provider('base_url = "example.com/v1"\n'),
    'r.toml:4:12: "base_url" in [[provider]] #1: expected an https address',
  ],
  [
    'a password in an address',
    provider('base_url = "https://u:secret@example.com"\n'),
    'r.toml:4:12: "base_url" in [[provider]] #1: a user name or password has no place in the address',
  ],
  [
    'a key where its variable belongs',
    provider('base_url = "https://p.example"\napi_key_env = "sk-secret-1"\n'),
    'r.toml:5:15: "api_key_env" in [[provider]] #1: expected the name of an environment variable such as GROQ_API_KEY, never the key itself',
  ],
  [
    'auth by a variable that is not named',
    provider('base_url = "https://p.example"\nauth = "env"\n'),
    'r.toml:1:1: "api_key_env" is missing in [[provider]] #1: auth = "env" reads the key from the variable it names',
  ],
  [
    'a signature for no region',
    provider('base_url = "https://p.example"\nauth = "sigv4"\n').replace('chat', 'messages'),
    'r.toml:1:1: "region" is missing in [[provider]] #1: auth = "sigv4" signs for a region',
  ],
  [
    'a signature for a host of the other dialect',
    provider('base_url = "https://p.example"\nauth = "sigv4"\nregion = "eu-west-1"\n'),
    'r.toml:3:11: "dialect" in [[provider]] #1: auth = "sigv4" is for hosts of the messages dialect: expected "messages"',
  ],
  [
    'a key in plain headers',
    provider('base_url = "https://p.example"\nheaders = { Authorization = "Bearer x" }\n'),
    'r.toml:5:13: "Authorization" in headers of [[provider]] #1: this header carries a key, name its variable in api_key_env instead',
  ],
  [
    'a header that is the router’s own',
    provider('base_url = "https://p.example"\nheaders = { host = "x" }\n'),
    'r.toml:5:13: "host" in headers of [[provider]] #1: the router sets this header itself',
  ],
]

describe('loadConfig', () => {
  it.each(CASES)('points at %s', (_, text, line, options) => {
    expect(lines(text, options)).toEqual([line])
  })

  it('lists everything that is wrong in one run, in the order of the text', () => {
    const found = lines(`[[route]]
gatez = []
ladder = ["openai/x", 3]
[[route]]
match = { agnt = 1, api = "x" }
mode = "enforce"
gates = ["nope", "g"]
[[gate]]
id = "g"
kind = "regex"
must = ["("]
flagz = "i"
`)
    expect(found.map(line => line.split(': ', 1)[0])).toEqual([
      'r.toml:2:1',
      'r.toml:3:23',
      'r.toml:5:11',
      'r.toml:5:27',
      'r.toml:6:8',
      'r.toml:7:10',
      'r.toml:11:9',
      'r.toml:12:1',
    ])
  })

  it('says nothing about a secret that was pasted into the wrong place', () => {
    const found = lines(`[[provider]]
id = "p"
dialect = "chat"
base_url = "https://user:canary@example.com/"
api_key_env = "canary-key"
credentials_env = "{canary}"
headers = { authorization = "Bearer canary", x-api-key = "canary" }
`)
    expect(found.length).toBeGreaterThanOrEqual(5)
    expect(found.join('\n')).not.toContain('canary')
  })

  it('gives paths without lines for an object', () => {
    expect(lines({ route: [{}, { gatez: [] }], gate: 3 }, { file: 'config' })).toEqual([
      'config route.1.gatez: unknown key "gatez" in [[route]] #2 - did you mean "gates"?',
      'config gate: "gate" at the top level: expected [[gate]], an array of tables',
      'config route.1: [[route]] #2 can never match: [[route]] #1 before it matches everything',
    ])
  })

  it('refuses text that no hash can be made of', () => {
    expect(lines({ route: [{ match: { agent: '\ud800' } }] }, { file: 'config' })).toEqual([
      'config: cannot canonicalise /match/agent/0: the text holds half of a surrogate pair',
    ])
  })

  it('loads nothing at all as a router that only observes', () => {
    const result = loadConfig('', { hostHasProcesses: false })
    expect(result.ok && [result.config.mode, result.config.routes, Object.keys(result.config.gates)]).toEqual([
      'observe',
      [],
      ['non-empty', 'json-valid'],
    ])
  })

  it('takes names that JavaScript objects have from birth', () => {
    const result = loadConfig(
      '[[gate]]\nid = "constructor"\nkind = "json-valid"\n[[gate]]\nid = "__proto__"\nkind = "tool-args"\n[[route]]\ngates = ["__proto__"]\n',
      { hostHasProcesses: false },
    )
    expect(result.ok && [Object.values(result.config.gates)[2]?.kind, Object.keys(result.config.gates)]).toEqual([
      'json-valid',
      ['non-empty', 'json-valid', 'constructor', '__proto__'],
    ])
    expect(lines('[[route]]\ngates = ["toString"]\nladder = ["valueOf/x"]\n')).toHaveLength(2)
  })

  it('lets a block change a built-in provider and keeps the rest of it', () => {
    const result = loadConfig('[[provider]]\nid = "anthropic"\napi_key_env = "MY_KEY"\n', {
      hostHasProcesses: false,
      env: { ROUTER_UPSTREAM_MESSAGES: 'http://mock:9000/' },
    })
    expect(result.ok && result.config.providers.anthropic).toMatchObject({
      dialect: 'messages',
      baseUrl: 'http://mock:9000',
      auth: 'env',
      apiKeyEnv: 'MY_KEY',
      builtin: true,
    })
  })

  it('does not ask for prices where a ladder can never be enforced', () => {
    expect(lines('[[route]]\nladder = ["openai/x"]\nmode = "observe"\nheader_modes = ["observe"]\n')).toEqual([])
  })

  it('takes either spelling of on_abstain', () => {
    const result = loadConfig(gate('kind = "json-valid"\non_abstain = "fail_closed"\n'), { hostHasProcesses: false })
    expect(result.ok && result.config.gates.g?.onAbstain).toBe('fail-closed')
  })
})
