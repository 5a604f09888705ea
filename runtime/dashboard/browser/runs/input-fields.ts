/** One member of an input, as a field of a form asks for it. */
export interface InputField {
  name: string
  title: string
  about: string | undefined
  required: boolean
  look: 'line' | 'text' | 'number' | 'choice' | 'json'
  /** How the form reads the field; see form-body.ts. */
  as: '' | 'number' | 'json'
  value: string
  choices: readonly { value: string; words: string }[]
  limits: Readonly<Record<string, string | number>>
}

type Schema = Readonly<Record<string, unknown>>

/** More members than that are typed faster as JSON. */
const MOST_FIELDS = 40
const LONG_TEXT = 200

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * The fields that ask for what a schema wants: the required ones first, in the order in which it lists them. Undefined where a form cannot
 * say all that the schema allows to be said; the input is given as JSON then.
 */
export function inputFields(schema: unknown): InputField[] | undefined {
  if (!isObject(schema) || !isObject(schema.properties)) return undefined
  const all = Object.entries(schema.properties)
  if (all.length === 0 || all.length > MOST_FIELDS) return undefined
  const required = Array.isArray(schema.required) ? schema.required.map(String) : []
  // A name with a dot would be read as a path, and the others as members of every object.
  if (all.some(([name]) => name === '' || name.includes('.') || name in Object.prototype)) return undefined
  const place = (name: string) => (required.includes(name) ? required.indexOf(name) : required.length)
  return all
    .toSorted(([a], [b]) => place(a) - place(b))
    .map(([name, member]) => fieldOf(name, isObject(member) ? member : {}, required.includes(name)))
}

function fieldOf(name: string, schema: Schema, required: boolean): InputField {
  const field = {
    name,
    title: textOf(schema.title) ?? name,
    about: textOf(schema.description),
    required,
    choices: [],
    limits: {},
  }
  const type = typeOf(schema)
  if (Array.isArray(schema.enum)) return choiceOf(field, schema.enum, schema.default)
  if (type === 'boolean') return choiceOf(field, [true, false], schema.default)
  if (type === 'string') return { ...field, ...textField(schema), as: '', value: textOf(schema.default) ?? '' }
  const value = schema.default === undefined ? '' : JSON.stringify(schema.default)
  if (type === 'number' || type === 'integer') {
    const limits = { step: type === 'integer' ? 1 : 'any', ...numbers({ min: schema.minimum, max: schema.maximum }) }
    return { ...field, look: 'number', as: 'number', value, limits }
  }
  return { ...field, look: 'json', as: 'json', value }
}

/** The values of a text go as they are, and all others as JSON. */
function choiceOf(
  field: Omit<InputField, 'look' | 'as' | 'value'>,
  values: readonly unknown[],
  chosen: unknown,
): InputField {
  const isText = values.every(value => typeof value === 'string' && value !== '')
  const written = (value: unknown) => (isText ? String(value) : JSON.stringify(value))
  const choices = values.map(value => ({ value: written(value), words: WORDS.get(value) ?? String(written(value)) }))
  return {
    ...field,
    look: 'choice',
    as: isText ? '' : 'json',
    value: chosen === undefined ? '' : written(chosen),
    choices,
  }
}

const WORDS = new Map<unknown, string>([
  [true, 'yes'],
  [false, 'no'],
])

const TYPES: Readonly<Record<string, string>> = { date: 'date', email: 'email', uri: 'url' }

function textField({ maxLength, minLength, pattern, format }: Schema): Pick<InputField, 'look' | 'limits'> {
  const type = typeof format === 'string' ? TYPES[format] : undefined
  const limits = { ...numbers({ maxlength: maxLength, minlength: minLength }), ...(type && { type }) }
  const isLine =
    type !== undefined || typeof pattern === 'string' || (typeof maxLength === 'number' && maxLength <= LONG_TEXT)
  return { look: isLine ? 'line' : 'text', limits }
}

function numbers(limits: Readonly<Record<string, unknown>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(limits).filter((entry): entry is [string, number] => typeof entry[1] === 'number'),
  )
}

/** The one type that a value may have beside null. */
function typeOf({ type }: Schema): unknown {
  if (!Array.isArray(type)) return type
  const others = type.filter(one => one !== 'null')
  return others.length === 1 && others.length === type.length ? others[0] : undefined
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
