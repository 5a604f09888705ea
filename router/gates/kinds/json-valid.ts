import { defineGate } from '../define-gate.ts'
import { PASS } from '../gate.ts'
import { jsonKeys, jsonOf, jsonWords } from '../json-answer.ts'

/** The answer is JSON; what is in it does not matter, repeated keys included. */
export const jsonValid = defineGate({
  kind: 'json-valid',
  about: 'The answer is JSON.',
  builtIn: true,
  keys: jsonKeys,
  words: jsonWords,
  resolve: ({ fences, on_tool_call }) => ({ fences, onToolCall: on_tool_call }),
  build: config => ({
    judge(input) {
      const read = jsonOf(config, input)
      return 'verdict' in read ? read : PASS
    },
  }),
})
