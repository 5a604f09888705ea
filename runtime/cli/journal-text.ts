import type { FileHandle } from 'node:fs/promises'
import type { RuntimeClient } from '../../shared/client/client.ts'
import { nativeSha256 } from '../../shared/host/native-sha256.ts'
import { CHAIN, type JournalExport } from '../../shared/wire/runtime/journal.ts'
import { journalDocument, journalGenesis } from '../execution/journal/event.ts'

export type ExportedEvent = JournalExport['events'][number]

/** The journal of a run that has ended, as it comes from the service; `check` sees each event before it is part of the text. */
export function journalTexts(
  client: RuntimeClient,
  runId: string,
  check: (event: ExportedEvent) => void = () => undefined,
): AsyncGenerator<string> {
  async function* pages() {
    for await (const event of client.runs.journal.each({ params: { id: runId } })) {
      check(event)
      yield [event]
    }
  }
  const genesis = journalGenesis(runId, nativeSha256)
  return journalDocument({ runId, chain: CHAIN, genesis, sealed: true }, pages())
}

const AT_ONCE = 256 * 1024

/** All of them: a single write of a disk that is getting full may end in the middle without an error. */
export async function appendTexts(file: FileHandle, texts: AsyncIterable<string> | Iterable<string>): Promise<void> {
  let held: string[] = []
  let characters = 0
  const flush = async () => {
    await file.appendFile(held.join(''))
    held = []
    characters = 0
  }
  for await (const text of texts) {
    held.push(text)
    characters += text.length
    if (characters >= AT_ONCE) await flush()
  }
  await flush()
}
