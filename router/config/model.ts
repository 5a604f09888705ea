import type { Accepted } from '../../shared/models/model-table.ts'
import type { NanoUsd } from '../../shared/money/money.ts'
import type { Price } from '../../shared/prices/price.ts'
import type { InboundApi } from '../../shared/wire/router/conventions.ts'

/** A model that the config names, with what it can do and what it costs. */
export interface Model {
  /** `provider/model` as the config has it. */
  readonly model: string
  readonly provider: string
  /** What a call to it is written in. */
  readonly dialect: InboundApi
  /** Its provider takes the Responses API as well. */
  readonly responses: boolean
  /** What goes upstream in `model`. */
  readonly upstreamModel: string
  readonly tools: boolean
  readonly images: boolean
  readonly maxInputTokens: number | null
  readonly maxOutputTokens: number
  /** What it takes in a request, by the model table and the config; absent where neither says anything. */
  readonly accepted?: Accepted
  /** null only with `unpriced = "null"`. */
  readonly price: ModelPrice | null
}

/** A model as it is called for a client: in the client's own words, where its provider takes them. */
export function modelForClient<M extends Model>(model: M, client: InboundApi): M {
  return client === 'responses' && model.responses ? { ...model, dialect: client } : model
}

export interface ModelPrice extends Price {
  readonly source: 'config' | 'builtin'
  readonly webSearch: NanoUsd
}

/** Dates and the marks of hosts: Bedrock's versions, Vertex AI's `@`, OpenRouter's variants. */
const NAME_ENDS =
  /(?:-v\d+(?::\d+)?|[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|latest|default)|:(?:free|nitro|floor|exacto|extended|online|thinking|beta|latest))$/

/**
 * What makes two names the same model: provider and vendor prefixes, a date, a host's mark and `-latest` do not
 * count (docs/spec/router.md §5.5). Names that differ only there come from one maker's one model.
 */
export function modelIdentity(name: string): string {
  let rest = name
    .toLowerCase()
    .slice(name.lastIndexOf('/') + 1)
    .replace(/^(?:[a-z]+(?:-gov)?\.)+/, '')
  while (NAME_ENDS.test(rest)) rest = rest.replace(NAME_ENDS, '')
  return rest
}

/** One model under its name in the config, or under the one it has upstream; a host may write its version with points. */
export function isSameModel(
  a: Pick<Model, 'model' | 'upstreamModel'>,
  b: Pick<Model, 'model' | 'upstreamModel'>,
): boolean {
  const names = namesOf(a)
  return namesOf(b).some(name => names.includes(name))
}

const namesOf = ({ model, upstreamModel }: Pick<Model, 'model' | 'upstreamModel'>) =>
  [model, upstreamModel].map(name => modelIdentity(name).replaceAll('.', '-'))
