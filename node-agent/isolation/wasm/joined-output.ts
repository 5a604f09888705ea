import type { FromProgram } from './messages.ts'

type Output = Extract<FromProgram, { type: 'output' }>

/** Messages in their order, with writes that come together as one: each message costs the node more than the bytes in it. */
export function joinedOutput(send: (message: FromProgram) => void, later: (flush: () => void) => void) {
  let waiting: Output[] = []

  function flush(): void {
    const [first] = waiting
    if (first === undefined) return
    const bytes = waiting.length === 1 ? first.bytes : new Uint8Array(Buffer.concat(waiting.map(one => one.bytes)))
    waiting = []
    send({ ...first, bytes })
  }

  return (message: FromProgram): void => {
    const [first] = waiting
    const joins = message.type === 'output' && message.id === first?.id && message.stream === first.stream
    if (!joins) flush()
    if (message.type !== 'output') send(message)
    else if (waiting.push(message) === 1) later(flush)
  }
}
