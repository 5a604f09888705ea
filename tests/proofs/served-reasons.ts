import { EXPORT_KINDS } from './router-proofs.ts'
import type { Handed } from './verifiers.ts'

/**
 * Where the service cannot give the reason of the others. A router verifies nothing that it is sent: it verifies its store, so that an
 * export is put into the rows of one, and what is no row cannot be put there. The command line is given the key that was kept, and
 * asked for signatures throughout; the tool `verify_receipts` speaks of the operator's own store: it knows the keys that are listed there,
 * and its newest records wait for their checkpoint.
 */
export const ELSEWHERE: Readonly<Record<string, string>> = {
  // The service has the key of its own receipts, by the id that is signed. Nothing that was signed is missing.
  'succeeded: without its key': 'valid',
  // Rows have an order by their place alone, and no place, id or report twice.
  'export plain: two records in each other’s place': 'valid, valid',
  'export plain: a record twice': 'not storable',
  'export plain: an id twice': 'not storable',
  'export feedback: a report more, with its hash': 'not storable',
  // The list of keys is made from columns, and the key that was kept does not care under which name a store lists one.
  'export plain: a member more of a key': 'valid, valid',
  'export plain: two lists of keys in one': 'valid, valid',
  'export plain: a key under the name of another': 'valid, checkpoint_signature',
  'export plain: written anew, and no checkpoints': 'unsigned, valid',
  'export plain: nothing at all': 'unsigned, valid',
  ...Object.fromEntries(
    EXPORT_KINDS.flatMap(kind => [
      [`export ${kind}: the last checkpoint is missing`, 'unsigned, valid'],
      [`export ${kind}: signed by a stranger`, 'checkpoint_signature, valid'],
    ]),
  ),
}

/** What the service says of a proof of a run, and the router of an export in its store: the command line, and the tool. */
export function servedReason(one: Handed & { name: string; reason: string }): string {
  const { name, reason } = one
  return ELSEWHERE[name] ?? ('text' in one ? `${reason}, ${reason}` : reason)
}
