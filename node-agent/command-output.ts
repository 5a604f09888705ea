import type { Exit } from './isolation/driver.ts'

const LAST_WORDS = 500

/** The end of what a program says beside its messages, so that its failure can be told. */
export async function lastWords(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of stream) text = (text + decoder.decode(chunk, { stream: true })).slice(-LAST_WORDS)
  return text.trim()
}

/** All that a program says. */
export async function textOf(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of stream) text += decoder.decode(chunk, { stream: true })
  return text + decoder.decode()
}

/** How a command ended, in words. */
export function told(exit: Exit): string {
  switch (exit.kind) {
    case 'code':
      return `exit code ${exit.code}`
    case 'signal':
      return exit.signal
    case 'limit':
      return `${exit.limit}: ${exit.detail}`
    case 'lost':
      return exit.detail
  }
}
