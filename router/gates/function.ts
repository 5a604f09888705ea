import { broken, type GateRun } from './gate.ts'
import { type GateDocument, gateDocument } from './gate-document.ts'
import { type GateAnswer, readVerdict } from './verdict.ts'

/** A gate that the library's caller brings along; it should end when its signal aborts. */
export type FunctionGate = (
  input: GateDocument,
  options: { readonly signal: AbortSignal },
) => GateAnswer | Promise<GateAnswer>

export function functionGate(id: string, judge: FunctionGate): GateRun {
  return async (input, signal) => {
    try {
      return readVerdict(await judge(gateDocument(id, input), { signal }))
    } catch {
      // What was thrown may quote the answer, so it is not passed on.
      return broken('threw')
    }
  }
}
