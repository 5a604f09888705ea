import { readJson } from '../../../shared/json/read-json.ts'
import type { Log } from '../../../shared/log/log.ts'
import { type Db, rowsOf } from '../../../shared/sql/db.ts'
import { jsonRows } from '../../../shared/sql/sql-values.ts'
import type { Clock } from '../../../shared/time/clock.ts'
import { nextTurn } from '../../../shared/time/sleep.ts'
import { userMessage } from '../../execution/harness/conversation.ts'
import { clearText } from '../../vault/records.ts'
import { DOCS_OF_MS, docNumber, type FactsOfRun, factWords, idWord } from './search-facts.ts'

const EVERY_MS = 5000
const AT_ONCE = 200
/** A run may be committed after one with a later id, by another process. */
const LATE_MS = 60_000
const MARK = 'search_mark'

export interface RunIndexDeps {
  db: Pick<Db, 'execute' | 'write' | 'readOnly'>
  clock: Pick<Clock, 'now'>
  log: Log
  /** From the first run on, as where older ones have come from another database. */
  fromFirst?: boolean
}

export type RunIndex = ReturnType<typeof runIndex>

/** Of a run for its words; an input of great length is left where it is, as is what is sealed. */
const COLUMNS = `runs.id, tenant_id, status, trigger_kind, agent_name, error_code, model, labels, finished_ms,
  case when finished_ms is not null and length(input) <= 100000 and substr(input, 1, 5) <> 'wbd1.' then input end as input,
  case when substr(error_message, 1, 5) <> 'wbd1.' then error_message end as error_message`

const NEW = `select ${COLUMNS} from runs left join run_data on run_id = runs.id
  where runs.id > ?1 and not exists (select 1 from run_search_docs as d where d.run_id = runs.id) order by runs.id limit ${AT_ONCE}`

/** Those that had not ended when they were read. */
const ENDED = `select ${COLUMNS} from run_search_docs as d cross join runs on runs.id = d.run_id left join run_data on run_data.run_id = runs.id
  where d.is_final = 0 and finished_ms is not null limit ${AT_ONCE}`

/**
 * Writes the words of runs into the index, behind the commits that make and end them: a run's own commits know nothing of it. Each
 * entry is written anew and whole, so that two processes may do the same work.
 */
export function runIndex({ db, clock, log, fromFirst = false }: RunIndexDeps) {
  let timer: ReturnType<typeof setInterval> | undefined
  let working: Promise<number> | undefined
  /** What is read at once, of the work that is under way. */
  let passing: Promise<number> = Promise.resolve(0)
  let mark: string | undefined = fromFirst ? '' : undefined
  let closed = false

  async function pass(): Promise<number> {
    mark ??= rowsOf<{ value: string }>(
      await db.execute({ sql: 'select value from runtime_meta where key = ?', args: [MARK] }),
    )[0]?.value
    const from = earlier(mark ?? '')
    const added = rowsOf<SearchableRun & FactsOfRun>(await db.execute({ sql: NEW, args: [from] }))
    const ended = rowsOf<SearchableRun & FactsOfRun>(await db.execute(ENDED))
    const runs = [...added, ...ended]
    if (runs.length === 0) return 0
    const last = added.at(-1)?.id
    if (last !== undefined && last > (mark ?? '')) mark = last
    const items = jsonRows(
      runs.map(run => ({
        id: run.id,
        n: docNumber(run.id),
        facts: factWords(run),
        words: readableWords(run),
        final: run.finished_ms === null ? 0 : 1,
      })),
    )
    const args = [items]
    await db.write([
      { sql: DOCS, args },
      { sql: OLD_WORDS, args },
      { sql: NEW_WORDS, args },
      { sql: KEEP_MARK, args: [MARK, mark ?? ''] },
    ])
    return Math.max(added.length, ended.length)
  }

  /** What has not been read yet, up to so many turns of it. */
  async function work(turns: number): Promise<number> {
    let read = 0
    for (let turn = 0; turn < turns && !closed; turn++) {
      passing = pass()
      const found = await passing
      read += found
      if (found < AT_ONCE) return read
      // A store in this process answers without letting other work in.
      await new Promise<void>(nextTurn)
    }
    return read
  }

  function once(turns: number): Promise<number> {
    if (closed || db.readOnly) return Promise.resolve(0)
    working ??= work(turns)
      .catch((error: unknown) => {
        log.error('runs could not be added to the index of the search', { error })
        return 0
      })
      .finally(() => {
        working = undefined
      })
    return working
  }

  return {
    start(): void {
      timer = setInterval(() => void once(Number.POSITIVE_INFINITY), EVERY_MS)
    },
    /** All that is there, for hosts without timers. */
    once: (): Promise<number> => once(Number.POSITIVE_INFINITY),
    /** The newest runs before a search; a long list of others is left to the clock, also where the clock is at it. */
    catchUp: (): Promise<number> => (working ? passing.catch(() => 0) : once(1)),
    async close(): Promise<void> {
      closed = true
      clearInterval(timer)
      await working
    },
  }

  /** The least id of that time before another: ids begin with their time. One of a clock that was ahead is no later than now. */
  function earlier(id: string): string {
    const ms = Math.min(Number.parseInt(id.replace('-', '').slice(0, 12), 16), clock.now().getTime())
    if (!Number.isFinite(ms)) return id
    const hex = Math.max(0, ms - LATE_MS)
      .toString(16)
      .padStart(12, '0')
    return `${hex.slice(0, 8)}-${hex.slice(8)}`
  }
}

const ITEMS = `json_each(?1) as item`
const of = (member: string) => `json_extract(item.value, '$.${member}')`

/** Entries stand in the order of their runs, so that the newest are found first and a page ends where it is full. */
const DOCS = `insert into run_search_docs (doc, run_id, is_final)
  select created_ms * ${DOCS_OF_MS} + ${of('n')}, runs.id, ${of('final')} from ${ITEMS} cross join runs on runs.id = ${of('id')} where true
  on conflict (run_id) do update set is_final = max(is_final, excluded.is_final)`

/** What was read of a run before its end does not replace what another process wrote of it since. */
const DUE = `${ITEMS} cross join run_search_docs on run_id = ${of('id')} and is_final = ${of('final')}`

const OLD_WORDS = `delete from run_search where rowid in (select doc from ${DUE})`

const NEW_WORDS = `insert into run_search (rowid, facts, words)
  select doc, ${of('facts')}, ${of('words')} from ${DUE}`

const KEEP_MARK = `insert into runtime_meta (key, value) values (?1, ?2)
  on conflict (key) do update set value = max(value, excluded.value)`

/** What the store has of a run, sealed where it is sealed. */
interface SearchableRun {
  id: string
  agent_name: string
  error_code: string | null
  model: string | null
  labels: string
  finished_ms: number | null
  input: string | null
  error_message: string | null
}

const MOST_MESSAGE = 2000
const MOST_ERROR = 500

/**
 * The words that a run is found by: those that stand in the store in clear. Of what a run was told only once it has ended, since an
 * agent that keeps no prompts lets go of them then.
 */
function searchWords(run: SearchableRun): string {
  const labels = Object.entries(readJson(run.labels) as Record<string, string>)
  const texts = run.finished_ms === null ? [] : [messageOf(run), clearOf(run.error_message)?.slice(0, MOST_ERROR)]
  return [run.agent_name, run.error_code, run.model, idWord(run.id), ...labels.flat(), ...texts]
    .filter(word => word !== null && word !== undefined && word !== '')
    .join('\n')
    .toWellFormed()
    .replaceAll('\0', ' ')
}

/** A run that is damaged is found by what else is known of it, and holds up no other. */
function readableWords(run: SearchableRun): string {
  try {
    return searchWords(run)
  } catch {
    return searchWords({ ...run, labels: '{}', input: null })
  }
}

const clearOf = (stored: string | null): string | undefined => (stored === null ? undefined : clearText(stored))

function messageOf({ input }: SearchableRun): string | undefined {
  const text = clearOf(input)
  if (text === undefined || text === '') return undefined
  return userMessage(readJson(text) as Record<string, unknown>).slice(0, MOST_MESSAGE)
}
