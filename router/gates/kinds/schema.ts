import { z } from 'zod'
import { readJson } from '../../../shared/json/read-json.ts'
import { text } from '../../../shared/wire/bounds.ts'
import { readSchema, schemaValidator } from '../../config/json-schema.ts'
import { numbered } from '../../config/problem.ts'
import { nameOf } from '../../config/read-table.ts'
import { defineGate, type GateContext } from '../define-gate.ts'
import { jsonKeys, jsonOf, jsonWords } from '../json-answer.ts'
import { checkValue, costlyKeywords } from '../schema-value.ts'
import { verdictOf } from '../verdict.ts'

/** The answer is JSON of a given shape. A schema that can take any time runs in the runner. */
export const schema = defineGate({
  kind: 'schema',
  about: 'The answer is JSON of a schema. One of `schema` and `file` is needed.',
  keys: {
    schema: z.unknown().optional(),
    file: text(1, 4096).optional(),
    ...jsonKeys,
  },
  words: {
    schema: { about: 'The schema, as a table: JSON Schema 2020-12 or draft-07.', unset: '`file`' },
    file: { about: 'The file that holds the schema, relative to the config.', unset: '`schema`' },
    ...jsonWords,
  },
  resolve(table, context) {
    const read = schemaOf(table, context)
    return read && { schema: read.schema, draft: read.draft, fences: table.fences, onToolCall: table.on_tool_call }
  },
  build(config, { regexRunner }) {
    const costly = costlyKeywords(config.schema, 'config')
    if (costly.length === 0) {
      const validator = schemaValidator(config)
      return {
        judge(input) {
          const read = jsonOf(config, input)
          return 'verdict' in read ? read : verdictOf(checkValue(validator, read.value))
        },
      }
    }
    if (regexRunner === undefined)
      return {
        code: 'host',
        message: `its schema uses ${costly.join(', ')}, which can take any time, and this host has no worker threads to stop it: leave these keywords out or run on Node`,
      }
    const { draft } = config
    const schema = JSON.stringify(config.schema)
    return {
      async run(input, signal) {
        const read = jsonOf(config, input)
        if ('verdict' in read) return read
        return verdictOf(
          await regexRunner.run({ kind: 'schema', schema, draft, value: read.text }, signal, input.tenantId),
        )
      },
    }
  },
})

/** The schema of the table or of its file; undefined where what is wrong with it has been reported. */
function schemaOf(table: { schema?: unknown; file?: string | undefined }, context: GateContext) {
  if (context.bad.has('schema') || context.bad.has('file')) return undefined
  if ((table.schema === undefined) === (table.file === undefined)) {
    context.report(['schema'], 'a schema gate takes "schema" or "file", one of them')
    return undefined
  }
  const key = table.file === undefined ? 'schema' : 'file'
  const given = table.file === undefined ? table.schema : readSchemaFile(table.file, context)
  if (given === undefined) return undefined
  const read = readSchema(given)
  if (!('problems' in read)) return read
  for (const { path, message } of read.problems) {
    const place = numbered(path)
    const sentence = `${nameOf(context.at(key))}: ${place === '' ? '' : `${place}: `}${message}`
    context.problems.atValue(key === 'schema' ? context.at(key, ...path) : context.at(key), sentence)
  }
  return undefined
}

function readSchemaFile(file: string, { host, report }: GateContext): unknown {
  if (host.readFile === undefined) {
    report(['file'], 'this host cannot read files: write the schema into the config')
    return undefined
  }
  let json: string
  try {
    json = host.readFile(file)
  } catch (error) {
    report(['file'], `cannot read "${file}": ${reason(error)}`)
    return undefined
  }
  try {
    return readJson(json)
  } catch (error) {
    report(['file'], `"${file}" is not JSON: ${reason(error)}`)
    return undefined
  }
}

/** What went wrong, as a host or a parser says it. */
const reason = (error: unknown) => (error instanceof Error ? error.message : String(error))
