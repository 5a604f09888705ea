import type { Words } from './key-words.ts'
import type { DefaultsTable, MatchTable, RouteTable } from './route-table.ts'

const ALWAYS = 'any'

export const matchWords: Words<MatchTable> = {
  agent: { about: 'The program that calls: `x-router-agent`, else the first word of `user-agent`.', unset: ALWAYS },
  subagent: { about: '`x-router-subagent`.', unset: ALWAYS },
  model: { about: 'The model that the request names.', unset: ALWAYS },
  api: { about: 'The dialect of the request: `messages`, `chat` or `responses`.', unset: ALWAYS },
  tenant: { about: 'The tenant of the key.', unset: ALWAYS },
  task: { about: '`x-router-task`.', unset: ALWAYS },
  language: { about: '`x-router-language`.', unset: ALWAYS },
  has_tools: { about: 'Whether it brings tools.', unset: ALWAYS },
  has_images: { about: 'Whether it brings images.', unset: ALWAYS },
  stream: { about: 'Whether it asks for a stream.', unset: ALWAYS },
  min_body_bytes: { about: 'The shortest body.', unset: ALWAYS },
  max_body_bytes: { about: 'The longest body.', unset: ALWAYS },
  header: {
    about: 'Headers and the pattern that each must match. Headers that carry keys are refused.',
    unset: ALWAYS,
  },
}

export const defaultsWords: Words<DefaultsTable> = {
  mode: { about: '`observe` passes calls on as they are, `enforce` routes them.', unset: '`ROUTER_MODE`' },
  gates: { about: 'The gates that an answer must pass, by id.', unset: 'none' },
  profile: { about: 'How eagerly it climbs; `router modes` explains each.', unset: '`balanced`' },
  start_rung: { about: 'The rung that a call starts on; 0 is the first of the ladder.', unset: '`0`' },
  min_rung_tools: { about: 'The lowest rung for requests with tools.', unset: '`0`' },
  min_rung_images: { about: 'The lowest rung for requests with images.', unset: '`0`' },
  model_hint: {
    about: 'The model that the request names: `ignore` it, `start` on its rung, or `pin` the call to it.',
    unset: '`ignore`',
  },
  strong_rung: { about: 'Where `x-router-mode: quality` starts.', unset: 'the last rung' },
  serve_threshold: {
    about: 'A fixed score below which no answer is served. It ends calibration.',
    unset: 'calibrated',
  },
  serve_failed_above_threshold: {
    about: 'Serves an answer that a gate refused if its score reaches the threshold.',
    unset: '`false`',
  },
  max_escalations: { about: 'How many rungs a call may climb.', unset: 'to the last rung' },
  max_attempts: { about: 'How many calls a request may make.', unset: '`6`' },
  on_exhausted: {
    about: 'When no answer passed: `serve_best` serves the best one, `error` is a 400, for messages a 424.',
    unset: '`serve_best`',
  },
  must_pass: {
    about: 'Gates whose refused answers are never served, not even as the best; `true`: all of the route.',
    unset: '`false`',
  },
  thinking_policy: {
    about:
      'Thinking of earlier turns: `floor` goes no lower than the rung that wrote it, `pin` stays there, `strip` cuts it out.',
    unset: '`floor`',
  },
  sticky_ttl_s: { about: 'How long a session stays on the rung that served it; `0`: not at all.', unset: '`0`' },
  stay_for_cache: {
    about:
      'Whether a conversation stays on the rung that serves it while what the provider has cached of it makes that cheaper than to go back down.',
    unset: '`true`',
  },
  early_release: { about: 'Lets a stream flow as soon as its gates can be sure.', unset: '`false`' },
  keepalive: { about: 'Keep-alives while an answer is late.', unset: '`auto`' },
  header_modes: { about: 'What `x-router-mode` may ask for here: `observe`, `enforce` or profiles.', unset: 'all' },
  json_by_gate: {
    about: 'Lets a chat request for JSON output go to messages without that wish, since a gate checks the JSON.',
    unset: '`false`',
  },
  adapt: {
    about:
      'Changes settings of a request that the model of a rung is known not to take, or has refused; the receipt names each. `false` sends them as they are.',
    unset: '`true`',
  },
  translate: {
    about:
      'What becomes of a request on a rung of another dialect: `adapt` leaves out wishes that have no counterpart there, and the receipt names each; `strict` skips the rung for any of them.',
    unset: '`adapt`',
  },
  score: { about: 'How the scores of several gates become one.', unset: '`min`' },
  shadow_rate: {
    about: 'The share of calls that are also made on the last rung, to measure what was saved.',
    unset: '`0`',
  },
  cache_ttl_s: { about: 'How long an answer that passed may be given again; `0` keeps none.', unset: '`0`' },
  budget: { about: 'Caps of this route; the keys are those of `[budget]`.', unset: 'no cap' },
}

export const routeWords: Words<Omit<RouteTable, keyof DefaultsTable>> = {
  match: { about: 'Which requests it is for: every key that is there must hold.', unset: 'all' },
  ladder: { about: 'The models, cheapest first, up to 16.', unset: 'none: the route observes' },
}
