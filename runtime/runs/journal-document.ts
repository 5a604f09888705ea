import type { JournalExport } from '../../shared/wire/runtime/journal.ts'

type Entry = JournalExport['events'][number] | { readonly hash: string }

/** The text of an exported journal in pieces: what is known of its end stands behind its entries, and no reader has to hold them all. */
export async function* journalDocument(
  about: Pick<JournalExport, 'runId' | 'chain' | 'genesis' | 'sealed'>,
  pages: AsyncIterable<readonly Entry[]>,
): AsyncGenerator<string> {
  let head = about.genesis
  let eventCount = 0
  yield `${JSON.stringify(about).slice(0, -1)},"events":[`
  for await (const page of pages) {
    yield `${eventCount > 0 ? ',' : ''}${page.map(entry => JSON.stringify(entry)).join(',')}`
    head = page.at(-1)?.hash ?? head
    eventCount += page.length
  }
  yield `],"head":${JSON.stringify(head)},"eventCount":${eventCount}}`
}
