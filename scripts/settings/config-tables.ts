import { z } from 'zod'
import { budgetTable } from '../../router/config/budget-table.ts'
import {
  acceptsWords,
  budgetWords,
  calibrationWords,
  type KeyWords,
  learningWords,
  limitsWords,
  modelWords,
  priceWords,
  pricingWords,
  providerWords,
  storeWords,
  streamWords,
  tierWords,
  timeoutWords,
} from '../../router/config/key-words.ts'
import { calibrationTable, learningTable } from '../../router/config/learning-tables.ts'
import { priceTable, pricingTable } from '../../router/config/price-table.ts'
import { modelTable, providerTable } from '../../router/config/provider-table.ts'
import { routeTable } from '../../router/config/route-table.ts'
import { defaultsWords, matchWords, routeWords } from '../../router/config/route-words.ts'
import { limitsTable, storeTable, streamTable } from '../../router/config/service-tables.ts'
import { gateKinds } from '../../router/gates/gate-kinds.ts'
import { errorBudgetWords, gateCommonWords } from '../../router/gates/gate-words.ts'

export interface ConfigKey {
  key: string
  about: string
  form: string
  unset: string
}

export interface ConfigTable {
  title: string
  about: string
  keys: readonly ConfigKey[]
}

/** Every table of the routing config, in the order of the page. */
export function configTables(): ConfigTable[] {
  const gate = gateKinds['non-empty'].schema
  return [
    table('[[route]]', 'Routes in their order: the first whose match holds takes the request.', routeTable, {
      ...routeWords,
      ...defaultsWords,
    }),
    table(
      'match of a route',
      'Patterns have `*` and ignore case. A list holds if one of its patterns does.',
      inside(routeTable, 'match'),
      matchWords,
    ),
    table(
      '[defaults]',
      'Every key of a route but `match` and `ladder`, for routes that do not have it.',
      undefined,
      {},
    ),
    table(
      '[[gate]]',
      'Gates that judge answers. `non-empty` and `json-valid` are there without a table.',
      gate,
      gateCommonWords,
    ),
    table('error_budget of a gate', '', inside(gate, 'error_budget'), errorBudgetWords),
    ...Object.values(gateKinds).map(({ kind, about, schema, words }) =>
      table(`kind = "${kind}"`, about, schema, words),
    ),
    table('[[provider]]', 'Where models are.', providerTable, providerWords),
    table('timeouts of a provider', '', inside(providerTable, 'timeouts'), timeoutWords),
    table('[[model]]', 'What a model can do, and its name at the provider.', modelTable, modelWords),
    table('accepts of a model', '', inside(modelTable, 'accepts'), acceptsWords),
    table(
      '[[price]]',
      'What a model costs, where the price table does not know it or is wrong for you.',
      priceTable,
      priceWords,
    ),
    table('tiers of a price', '', inside(priceTable, 'tiers'), tierWords),
    table('[pricing]', '', pricingTable, pricingWords),
    table(
      '[budget]',
      'Caps of everything. The same keys stand in `budget` of a route and in `[tenant.<id>.budget]`; the smallest cap wins.',
      budgetTable,
      budgetWords,
    ),
    table(
      '[calibration]',
      'How the threshold of a route follows the outcomes that are reported.',
      calibrationTable,
      calibrationWords,
    ),
    table('[learning]', 'How start rungs are learned.', learningTable, learningWords),
    table('[stream]', '', streamTable, streamWords),
    table('[limits]', '', limitsTable, limitsWords),
    table('[store]', '', storeTable, storeWords),
  ]
}

function table(
  title: string,
  about: string,
  schema: z.ZodObject | undefined,
  words: Readonly<Record<string, KeyWords>>,
): ConfigTable {
  const keys = Object.entries(words).map(([key, said]) => {
    const member = schema?.shape[key]
    if (!(member instanceof z.ZodType)) throw new Error(`${title} has no key ${key}`)
    const { about, unset } = typeof said === 'string' ? { about: said, unset: defaultOf(member) } : said
    if (unset === undefined) throw new Error(`${key} of ${title}: say what holds without it`)
    return { key, about, form: formOf(key, member), unset }
  })
  return { title, about, keys }
}

/** The sentence with which a config that holds something else is refused. */
function formOf(key: string, schema: z.ZodType): string {
  if (key === 'kind') return 'one of the kinds'
  const refused = schema.safeParse(null)
  if (refused.success) return 'table'
  const said = refused.error.issues[0]?.message ?? ''
  return said
    .replace(/^expected (?:an? |the )?/, '')
    .replace(`from 0 to ${Number.MAX_SAFE_INTEGER}`, 'of at least 0')
    .replaceAll(/"([^"]*)"/g, '`$1`')
}

function defaultOf(schema: z.ZodType): string | undefined {
  const read = schema.safeParse(undefined)
  if (!read.success) return 'required'
  return read.data === undefined ? undefined : `\`${JSON.stringify(read.data).replaceAll(/^"|"$/g, '')}\``
}

/** The table that a key of a table holds. */
function inside(schema: z.ZodObject, key: string): z.ZodObject {
  let member: unknown = schema.shape[key]
  while (!(member instanceof z.ZodObject)) {
    if (member instanceof z.ZodArray) member = member.element
    else if (member instanceof z.ZodOptional || member instanceof z.ZodPrefault) member = member.unwrap()
    else throw new Error(`${key} holds no table`)
  }
  return member
}
