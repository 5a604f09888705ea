import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseSync } from 'oxc-parser'

export interface Import {
  specifier: string
  /** Path inside the project for relative imports. */
  file: string | undefined
  line: number
  typeOnly: boolean
}

export interface Source {
  path: string
  imports: readonly Import[]
  /** Uses of Node's global names. */
  globals: readonly { name: string; line: number }[]
  /** Lines of `mkdir` calls with the option `recursive`. */
  recursiveMkdirs: readonly number[]
  /** Lines of `JSON.parse` calls. */
  jsonParses: readonly number[]
  /** Lines of calls that read the body of a request, however large it is. */
  wholeBodies: readonly number[]
  /** Lines of `...{ a, b }` inside of an object: its members may as well stand there. */
  literalSpreads: readonly number[]
  /** Lines where functions of the file's own scope begin that are longer than LONGEST_FUNCTION. */
  longFunctions: readonly number[]
  /** True when the file does nothing but pass on what others export. */
  onlyReexports: boolean
}

export const LONGEST_FUNCTION = 120

const NODE_GLOBALS = new Set(['process', 'Buffer', '__dirname', '__filename', 'require', 'setImmediate'])

export function readSource(root: string, path: string): Source {
  return parseSource(path, readFileSync(join(root, path), 'utf8'))
}

export function parseSource(path: string, text: string): Source {
  const { module, program, errors } = parseSync(path, text)
  if (errors.length > 0) throw new Error(`${path} does not parse: ${errors[0]!.message}`)
  const lineAt = (offset: number) => text.slice(0, offset).split('\n').length
  const imports: Import[] = []
  const add = (specifier: string, offset: number, typeOnly: boolean) => {
    const file = specifier.startsWith('.') ? join(dirname(path), specifier) : undefined
    imports.push({ specifier, file, line: lineAt(offset), typeOnly })
  }
  for (const { moduleRequest, entries, start } of module.staticImports) {
    const statement = text.slice(start, moduleRequest.start)
    const named = entries.length > 0 && entries.every(entry => entry.isType)
    add(moduleRequest.value, start, named || /^import\s+type\b/.test(statement))
  }
  for (const { entries, start } of module.staticExports) {
    const from = entries.find(entry => entry.moduleRequest)?.moduleRequest
    if (from)
      add(
        from.value,
        start,
        entries.every(entry => entry.isType),
      )
  }
  for (const { moduleRequest } of module.dynamicImports) {
    const literal = /^['"]([^'"]+)['"]$/.exec(text.slice(moduleRequest.start, moduleRequest.end))
    if (literal) add(literal[1]!, moduleRequest.start, false)
  }
  const globals: { name: string; line: number }[] = []
  const recursiveMkdirs: number[] = []
  const jsonParses: number[] = []
  const wholeBodies: number[] = []
  const literalSpreads: number[] = []
  visit(program, undefined, '', {
    global: node => globals.push({ name: node.name, line: lineAt(node.start) }),
    recursiveMkdir: start => recursiveMkdirs.push(lineAt(start)),
    jsonParse: start => jsonParses.push(lineAt(start)),
    wholeBody: start => wholeBodies.push(lineAt(start)),
    literalSpread: start => literalSpreads.push(lineAt(start)),
  })
  const body = program.body as readonly { type: string; source?: unknown }[]
  const onlyReexports =
    body.length > 0 &&
    body.every(
      ({ type, source }) => /^Export(?:Named|All)Declaration$/.test(type) && source !== null && source !== undefined,
    )
  const longFunctions = functionsOf(program.body)
    .filter(({ start, end }) => lineAt(end) - lineAt(start) >= LONGEST_FUNCTION)
    .map(({ start }) => lineAt(start))
  return {
    path,
    imports,
    globals,
    recursiveMkdirs,
    jsonParses,
    wholeBodies,
    literalSpreads,
    longFunctions,
    onlyReexports,
  }
}

interface Statement {
  type: string
  start: number
  end: number
  declaration?: Statement | null
  declarations?: readonly { init?: Statement | null }[]
}

/** Functions that stand in a file itself, declared or assigned, exported or not. */
function functionsOf(statements: unknown): Statement[] {
  return (statements as readonly Statement[]).flatMap(statement => {
    const own = statement.type.startsWith('Export') && statement.declaration ? statement.declaration : statement
    if (own.type === 'FunctionDeclaration') return [own]
    return (own.declarations ?? []).flatMap(({ init }) => (init && /Function/.test(init.type) ? [init] : []))
  })
}

interface Found {
  global(node: { name: string; start: number }): void
  recursiveMkdir(start: number): void
  jsonParse(start: number): void
  wholeBody(start: number): void
  literalSpread(start: number): void
}

function visit(value: unknown, parent: Record<string, unknown> | undefined, key: string, found: Found): void {
  if (Array.isArray(value)) {
    for (const item of value) visit(item, parent, key, found)
    return
  }
  if (typeof value !== 'object' || value === null) return
  const node = value as Record<string, unknown>
  if (node.type === 'Identifier' && NODE_GLOBALS.has(node.name as string) && !isName(parent, key)) {
    found.global(node as unknown as { name: string; start: number })
  }
  if (node.type === 'CallExpression' && isRecursiveMkdir(node)) found.recursiveMkdir(node.start as number)
  if (node.type === 'CallExpression' && isJsonParse(node)) found.jsonParse(node.start as number)
  if (node.type === 'CallExpression' && isWholeBody(node)) found.wholeBody(node.start as number)
  if (node.type === 'SpreadElement' && parent?.type === 'ObjectExpression' && isObject(node.argument)) {
    found.literalSpread(node.start as number)
  }
  for (const [name, member] of Object.entries(node)) visit(member, node, name, found)
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'ObjectExpression'
}

/** True where the identifier is only the name of a member, not a use of the global. */
function isName(parent: Record<string, unknown> | undefined, key: string): boolean {
  if (!parent || parent.computed === true) return false
  if (key === 'property') return parent.type === 'MemberExpression'
  return key === 'key'
}

interface Call {
  callee: Expression
  arguments: readonly { type: string; value?: string; properties?: readonly { key?: { name?: string } }[] }[]
}

function isRecursiveMkdir(node: unknown): boolean {
  const { callee, arguments: given } = node as Call
  if (!/^mkdir(?:Sync)?$/.test(callee.name ?? callee.property?.name ?? '')) return false
  return given.some(({ properties }) => properties?.some(({ key }) => key?.name === 'recursive'))
}

function isJsonParse(node: unknown): boolean {
  const { callee } = node as Call
  return callee.object?.name === 'JSON' && callee.property?.name === 'parse'
}

const READS_WHOLE = /^(?:text|json|formData|parseBody|arrayBuffer|blob|bytes)$/

/** A request's own reader, as in `c.req.text()`, or Hono's validator of a body, which calls one. */
function isWholeBody(node: unknown): boolean {
  const { callee, arguments: given } = node as Call
  if (/^(?:zValidator|validator)$/.test(callee.name ?? '')) return /^(?:json|form)$/.test(given[0]?.value ?? '')
  return READS_WHOLE.test(callee.property?.name ?? '') && isRequest(callee.object)
}

interface Expression {
  name?: string
  object?: Expression
  property?: { name?: string }
  callee?: Expression
  /** Of what a type, a `!`, a `?.` or parentheses stand around. */
  expression?: Expression
}

/** `req`, `c.req`, `request` and `event.request`, also behind `raw` and `clone()`. */
function isRequest(value: Expression | undefined): boolean {
  if (value === undefined) return false
  if (value.expression !== undefined) return isRequest(value.expression)
  if (value.callee !== undefined) return value.callee.property?.name === 'clone' && isRequest(value.callee.object)
  const name = value.name ?? value.property?.name ?? ''
  return /^req(?:uest)?$/.test(name) || (name === 'raw' && isRequest(value.object))
}
