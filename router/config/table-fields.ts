import { z } from 'zod'
import { expected, shape } from '../../shared/wire/bounds.ts'
import { suggestion } from './suggestion.ts'

interface Complaint {
  readonly input?: unknown
}

/** Ids of gates and providers. */
export const id = shape(/^[a-z0-9._-]{1,64}$/, "1 to 64 lower-case letters, digits, '.', '_' or '-'")

/** `provider/model`, split at the first slash; vendors put more slashes, colons and at-signs into model names. */
export const MODEL_REF = /^[a-z0-9._-]{1,64}\/[\x21-\x7e]{1,200}$/
export const modelRef = shape(MODEL_REF, '"provider/model"')

/** The name of a variable. A key pasted in its place must neither pass nor be repeated in the message. */
export const envName = shape(
  /^[A-Z][A-Z0-9_]{0,127}$/,
  'the name of an environment variable such as GROQ_API_KEY, never the key itself',
)

/** A variable that is passed on; lower-case names such as http_proxy exist. */
export const variable = shape(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'the name of an environment variable')

export const flag = z.boolean({ error: expected('true or false') })

export const choice = <const T extends readonly [string, ...string[]]>(values: T) =>
  z.enum(values, {
    error: ({ input }: Complaint) => {
      if (input === undefined) return 'Required'
      const meant = typeof input === 'string' ? suggestion(input, values) : ''
      return `expected ${oneOf(values)}${meant}`
    },
  })

/** A whole number within bounds. */
export const whole = (min: number, max: number) => {
  const error = outside('a whole number', min, max)
  return z.int({ error }).min(min).max(max)
}

export const decimal = (min: number, max: number) => {
  const error = outside('a number', min, max)
  return z.number({ error }).min(min).max(max)
}

/** Dollars that limit something: more than nothing, which means at least one nano-USD. */
export const usdCap = z
  .number({ error: expected('a number of dollars above 0, up to 1000000') })
  .min(1e-9)
  .max(1_000_000)

/** Dollars for each run or call. */
export const usdFee = decimal(0, 1000)

const price = expected('a price from 0 to 10000 USD per million tokens with at most 6 decimals')

/** Dollars per million tokens: whole pico-USD for each token, so that costs stay exact. */
export const perMtok = z
  .number({ error: price })
  .min(0)
  .max(10_000)
  .refine(usd => Math.abs(Math.round(usd * 1e6) - usd * 1e6) < 1e-3, { error: price })

export const strings = z.array(z.string({ error: expected('a string') }), { error: expected('an array of strings') })

/** A list without repeats. */
export const uniqueList = <T extends z.ZodType<string>>(item: T) =>
  z.array(item, { error: expected('an array of strings') }).superRefine((items, ctx) => {
    items.forEach((value, i) => {
      if (items.indexOf(value) !== i) ctx.addIssue({ code: 'custom', path: [i], message: `"${value}" is listed twice` })
    })
  })

function outside(kind: string, min: number, max: number) {
  return ({ input }: Complaint): string => {
    if (input === undefined) return 'Required'
    return `expected ${kind} from ${min} to ${max}${typeof input === 'number' ? `, got ${input}` : ''}`
  }
}

function oneOf(values: readonly string[]): string {
  const quoted = values.map(value => `"${value}"`)
  return quoted.length === 1 ? quoted[0]! : `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`
}
