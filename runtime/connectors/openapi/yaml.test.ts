import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { readDocument } from './document.ts'
import { MOST_YAML_CHARACTERS, MOST_YAML_TOKENS, readYaml } from './yaml.ts'

const HEAD = 'openapi: 3.0.0\n'
const filled = (unit: string, characters: number) =>
  unit.repeat(Math.ceil(characters / unit.length)).slice(0, characters)
const counted = (line: (n: number) => string, times: number) =>
  Array.from({ length: times }, (_, n) => line(n)).join('')

/** As vendors write theirs: `size` characters of operations in blocks, with descriptions, references and some in flow style. */
function vendorDocument(size: number): string {
  const operation = (n: number) => `  /v1/resources_${n}/{id}:
    get:
      operationId: getResource${n}
      summary: Retrieve a resource
      description: |-
        Retrieves the details of an existing resource. Supply the identifier
        from either a creation request or the list, and the API returns it.
      tags: [resources, "v1"]
      parameters:
        - in: path
          name: id
          required: true
          schema: # of a path
            maxLength: 5000
            type: string
      responses:
        '200':
          content: {application/json: {schema: {$ref: '#/components/schemas/resource'}}}
          description: Successful response.
        default:
          description: "An error: see \\"errors\\""
`
  const schemas = 'components:\n  schemas:\n    resource:\n      type: object\n'
  return `${HEAD}paths:\n${counted(operation, Math.ceil(size / operation(0).length))}${schemas}`
}

/** The longest that this thread is busy without a turn for other work, in milliseconds of its own, whatever else the machine does. */
async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  let going = true
  let longest = 0
  let since = process.threadCpuUsage()
  const look = () => {
    const { user, system } = process.threadCpuUsage(since)
    longest = Math.max(longest, (user + system) / 1000)
    since = process.threadCpuUsage()
  }
  const others = (async () => {
    while (going) {
      look()
      await nextTurn()
    }
  })()
  await work().catch(() => undefined)
  look()
  going = false
  await others
  return longest
}

describe('YAML of a stranger', () => {
  it.each([
    ['60,000 keys', HEAD + counted(n => `k${n}: 1\n`, 60_000)],
    ['25,000 keys, which are let in', HEAD + counted(n => `k${n}: 1\n`, 25_000)],
    ['a long flow map', `${HEAD}x: {${filled('a: b, ', 500_000)}}`],
    ['maps that are never closed', filled('{a: b, ', 500_000)],
    ['quotes', filled('"', 500_000)],
    ['pairs of quotes', filled('"" ', 140_000)],
    ['commas', `${HEAD}x: [${filled(',', 140_000)}]`],
    ['closing brackets', HEAD + filled(']', 140_000)],
    ['opening brackets', filled('[', 500_000)],
    ['small lists', `${HEAD}x: [${filled('[],', 100_000)}1]`],
    ['explicit keys', filled('? ', 500_000)],
    ['a key of many levels', filled('a: ', 500_000)],
    ['indents', counted(n => `${' '.repeat(n)}a:\n`, 1000)],
    ['anchors and aliases', HEAD + counted(n => `k${n}: &a${n} 1\nl${n}: *a${n}\n`, 20_000)],
    ['anchors', filled('&a ', 140_000)],
    ['aliases of much', `${HEAD}a: &a [${filled('1,', 60_000)}]\nb: [${filled('*a,', 297)}]\n`],
    [
      'merges of version 1.1',
      `%YAML 1.1\n---\n${HEAD}a: &a {${counted(n => `k${n}: 1,`, 12_000)}}\nb:\n${'- {<<: *a}\n'.repeat(99)}`,
    ],
    ['an ordered map', `${HEAD}x: !!omap [${counted(n => `a${n}: 1,`, 20_000)}]\n`],
    ['tags', `${HEAD}x:\n${filled('- !x a\n', 140_000)}`],
    ['block scalars', HEAD + counted(n => `k${n}: |\n  a\n`, 15_000)],
    ['a folded scalar', `${HEAD}x: >\n${filled('  a\n\n   b\n', 500_000)}`],
    ['empty lines in a block', `${HEAD}x: |\n${filled('\n', 500_000)}  a\n`],
    ['a long comment', `${HEAD}#${filled('x', 500_000)}\n`],
    ['comments', HEAD + filled('#x\n', 200_000)],
    ['carriage returns', `${HEAD}${filled('\r', 500_000)}x: 1\n`],
    ['documents', HEAD + filled('---\n', 500_000)],
    ['directives', filled('%\n', 280_000)],
    ['a document as of a vendor', vendorDocument(500_000)],
  ])('leaves others their turn: %s', async (_, text) => {
    expect(await longestTurn(() => readDocument(text))).toBeLessThan(1000)
  })

  it('is read as the package reads it, however long a real document is', async () => {
    const text = vendorDocument(300_000)
    expect(text.length).toBeGreaterThan(300_000)
    expect(await readDocument(text)).toEqual(parse(text, { uniqueKeys: false }))
  })

  it.each([
    ['a: 1\nb:\n  c: 1\n  "c": 2\n', /^line 4, column 3: expected each key of a map once$/],
    ['a: [1\nb: 2\n', /^line 2, column 1: Flow sequence/],
    ['a: 1\n---\nb: 1\n', /^line 2, column 1: expected one document/],
    [`a: &a 1\nb: [${'*a,'.repeat(101)}]`, /^expected at most 100 aliases$/],
    ['[a, '.repeat(400), /^it is nested too deeply$/],
    [
      `x: [${'[],'.repeat(MOST_YAML_TOKENS / 3)}]`,
      /^expected at most 150000 tokens of YAML: send a larger document as JSON$/,
    ],
  ])('is refused in a sentence: %.20s', async (text, sentence) => {
    await expect(readYaml(text)).rejects.toThrow(sentence)
  })

  it('is refused where it is too long, and JSON of that length is not', async () => {
    const long = 'x'.repeat(MOST_YAML_CHARACTERS)
    await expect(readDocument(`${HEAD}x: ${long}`)).rejects.toThrow(
      /^expected JSON, or at most 524288 characters of YAML: convert a larger document to JSON \(/,
    )
    expect(await readDocument(JSON.stringify({ openapi: '3.0.0', x: long }))).toMatchObject({ x: long })
  })
})
