/** Percent of a model's list prices that an answer costs under a word of its provider. */
export type Rates = Readonly<Record<string, number>>

interface Row {
  readonly models: RegExp
  readonly rates: Rates
}

/** As the makers publish them; a part of a percent is rounded up. */
const ROWS: readonly Row[] = [
  { models: /claude-(?:opus-(?:4-8|5(?:-5)?)|(?:fable|mythos)-5-2)(?!\d)/, rates: { fast: 200 } },
  { models: /claude-opus-4-[67](?!\d)/, rates: { fast: 600 } },
  { models: /gpt-5\.5/, rates: { priority: 250, flex: 50 } },
  { models: /gpt-5\.4(?!-)/, rates: { priority: 200, flex: 52 } },
  { models: /gpt-5-mini/, rates: { priority: 180, flex: 50 } },
  { models: /gpt-[56]/, rates: { priority: 200, flex: 50 } },
  { models: /gpt-4\.1-nano/, rates: { priority: 200 } },
  { models: /gpt-4\.1|gpt-4o-2024-05-13/, rates: { priority: 175 } },
  { models: /gpt-4o-mini/, rates: { priority: 167 } },
  { models: /gpt-4o/, rates: { priority: 170 } },
  { models: /(?:^|\/)o3(?!-)|(?:^|\/)o3-\d/, rates: { priority: 175, flex: 50 } },
  { models: /o4-mini/, rates: { priority: 182, flex: 51 } },
  { models: /gemini-/, rates: { priority: 180 } },
]

/** Where its maker publishes none: the dearest of those that are known, and no discount. */
const DEAREST: Rates = { fast: 600, priority: 250, ultrafast: 600, us: 110 }

/** What is known of a model, by any of its names. */
export function ratesOf(name: string): Rates {
  return ROWS.find(({ models }) => models.test(name))?.rates ?? {}
}

/** Numerator and denominator of all words together, so that a cost is rounded once. */
export function rateOf(known: Rates | undefined, words: readonly string[]): { times: bigint; over: bigint } {
  let times = 1n
  let over = 1n
  for (const word of words) {
    times *= BigInt(known?.[word] ?? DEAREST[word] ?? 100)
    over *= 100n
  }
  return { times, over }
}
