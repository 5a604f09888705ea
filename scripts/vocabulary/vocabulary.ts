import { parseSync } from 'oxc-parser'

/** Words that a comment or a document does without, and what to write instead. */
const WORDS: readonly [RegExp, string][] = [
  [
    /\b(?:some|no|any)body(?:'s)?\b|\bwhoever\b/gi,
    'name the component or the person: the node, the caller, the operator',
  ],
  [/\b(?:is|are) told\b/gi, 'say what it gets: is notified, is reported, receives'],
  [/\bof ours\b/gi, 'say whose it is: of the package, of this process'],
  [/\bbegun\b/gi, 'write started'],
]

/** Names that the code had and that may not come back, each with its successor. */
const RETIRED: Readonly<Record<string, string>> = {
  noding: 'assembleNodes',
  seat: 'worker',
  FarRun: 'RemoteRun',
  FarStore: 'RemoteRunStore',
  farRuns: 'placedRuns',
  farData: 'remoteReads',
  tookOver: 'acceptTakeover',
  standIn: 'fallbackNode',
  planeBox: 'peerEncryption',
  planes: 'peers',
  providing: 'assembleProviders',
  receipting: 'assembleReceipts',
  conversing: 'assembleSessions',
  parking: 'suspendUntil',
  concealing: 'redactValues',
  courier: 'webhookDelivery',
}

/** Names of files that say nothing to a stranger. */
const RETIRED_FILES =
  /^(?:runtime|router|node-agent|shared)\/(?:.*\/)?(?:noding|hooking|providing|scheduling|receipting|conversing|connecting|budgeting|tracing|running|served|parking|hub|leaving|concealing|voice|courier|seat[\w-]*|far-[\w-]+|took-over|stand-in|news|rarely|unmet|[\w-]+-room|room)(?:\.test)?\.ts$/

/** Changes are history; they speak as they were written. */
const HISTORY = /^CHANGELOG\.md$|^scripts\/vocabulary\//

interface Finding {
  path: string
  line: number
  message: string
}

/** The words and names of a file that may not stand there. */
export function findWords(path: string, text: string): Finding[] {
  if (HISTORY.test(path)) return []
  const found: Finding[] = []
  const lineAt = (offset: number) => text.slice(0, offset).split('\n').length
  const isSource = path.endsWith('.ts')
  const passages = isSource ? commentsOf(path, text) : [{ start: 0, text }]
  for (const passage of passages) {
    for (const [word, advice] of WORDS) {
      for (const match of passage.text.matchAll(word)) {
        const line = lineAt(passage.start + match.index)
        found.push({ path, line, message: `"${match[0]}": ${advice}` })
      }
    }
  }
  if (!isSource) return found
  if (RETIRED_FILES.test(path)) found.push({ path, line: 1, message: 'name the file for what a maintainer would grep' })
  for (const match of text.matchAll(/\b(?:const|let|function|class|interface|type)\s+(\w+)/g)) {
    const successor = Object.hasOwn(RETIRED, match[1]!) ? RETIRED[match[1]!] : undefined
    if (successor !== undefined) {
      found.push({ path, line: lineAt(match.index), message: `"${match[1]}" is retired: write ${successor}` })
    }
  }
  return found
}

function commentsOf(path: string, text: string): { start: number; text: string }[] {
  return parseSync(path, text).comments.map(({ start, end }) => ({ start, text: text.slice(start, end) }))
}
