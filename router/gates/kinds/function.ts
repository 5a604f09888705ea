import { text } from '../../../shared/wire/bounds.ts'
import { suggestion } from '../../config/suggestion.ts'
import { defineGate } from '../define-gate.ts'
import { broken } from '../gate.ts'
import { gateDocument } from '../gate-document.ts'
import { readVerdict } from '../verdict.ts'

/** A function that was handed to the library judges the answer. */
export const functionGate = defineGate({
  kind: 'function',
  about: 'A function of the process that has the router as a library judges the answer.',
  slow: true,
  scores: true,
  keys: { name: text(1, 128) },
  words: { name: 'The name under which `createRouter` was given it.' },
  resolve({ name }, { host, report }) {
    if (!host.functions.has(name)) {
      const hint = suggestion(name, host.functions) || ', add it to its gates option'
      report(['name'], `createRouter was given no gate function "${name}"${hint}`)
    }
    return { name }
  },
  build({ id, name }, { functions = {} }) {
    const judge = Object.hasOwn(functions, name) ? functions[name] : undefined
    if (judge === undefined)
      return {
        code: 'unknown_function',
        message: `no function "${name}" was handed over: pass it in \`gates\``,
      }
    return {
      async run(input, signal) {
        try {
          return readVerdict(await judge(gateDocument(id, input), { signal }))
        } catch {
          // What was thrown may quote the answer, so it is not passed on.
          return broken('threw')
        }
      },
    }
  },
})
