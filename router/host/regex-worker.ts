import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { createTurns } from '../../shared/time/slots.ts'
import { regexJobs } from '../gates/regex-job.ts'
import type { RegexAnswer, RegexJob, RegexRunner } from '../gates/regex-runner.ts'

const ROLE = 'waybill-regex-worker'
/** A runaway value ends its worker, not the process. */
const HEAP_MB = 512

interface Task {
  readonly job: RegexJob
  readonly tenantId: string
  readonly settle: { resolve(answer: RegexAnswer): void; reject(reason: unknown): void }
}

interface Thread {
  readonly worker: Worker
  task: Task | undefined
}

export interface RegexWorkers extends RegexRunner {
  close(): Promise<void>
}

/**
 * Runs patterns in worker threads: the only way to end a pattern that backtracks is to end its thread. Threads are started
 * when they are needed, kept for the next job, and do not keep the process alive.
 */
export function regexWorkers({ size = 2 }: { size?: number } = {}): RegexWorkers {
  const threads = new Set<Thread>()
  const waiting = createTurns<Task>()
  let closed = false

  function startThread(): Thread {
    const worker = new Worker(new URL(import.meta.url), {
      workerData: ROLE,
      execArgv: [],
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
    })
    const thread: Thread = { worker, task: undefined }
    worker.unref()
    worker.on('message', (answer: RegexAnswer) => {
      const { task } = thread
      thread.task = undefined
      worker.unref()
      task?.settle.resolve(answer)
      pump()
    })
    const lost = (error: unknown) => {
      drop(thread)?.settle.reject(error)
      pump()
    }
    worker.on('error', lost)
    worker.on('exit', () => lost(new Error('the regex worker ended')))
    threads.add(thread)
    return thread
  }

  /** Forgets a thread and hands back what it was working on. */
  function drop(thread: Thread): Task | undefined {
    const { task } = thread
    thread.task = undefined
    threads.delete(thread)
    return task
  }

  function pump(): void {
    while (!closed) {
      const idle = [...threads].find(({ task }) => task === undefined)
      const isFull = idle === undefined && threads.size >= size
      // A tenant that has no thread does not wait for those of others, which may take all their time.
      if (isFull && threads.size >= 2 * size) return
      const task = waiting.next(party => !isFull || ![...threads].some(one => one.task?.tenantId === party))
      if (task === undefined) return
      const thread = idle ?? startThread()
      thread.task = task
      thread.worker.ref()
      thread.worker.postMessage(task.job)
    }
  }

  function abandon(task: Task): void {
    waiting.remove(task.tenantId, task)
    const thread = [...threads].find(one => one.task === task)
    if (thread === undefined) return
    drop(thread)
    void thread.worker.terminate()
    pump()
  }

  return {
    run(job, signal, tenantId = '') {
      return new Promise((resolve, reject) => {
        if (signal.aborted || closed) {
          reject(signal.aborted ? signal.reason : new Error('the regex workers are closed'))
          return
        }
        const task = taskOf({ job, tenantId }, signal, { resolve, reject }, abandon)
        waiting.add(tenantId, task)
        pump()
      })
    },

    async close() {
      closed = true
      const gone = new Error('the regex workers are closed')
      for (const task of waiting.all()) task.settle.reject(gone)
      await Promise.all(
        [...threads].map(thread => {
          drop(thread)?.settle.reject(gone)
          return thread.worker.terminate()
        }),
      )
    },
  }
}

/** A job with what settles it, once: its answer, the end of its thread, or the signal, by which it is abandoned. */
function taskOf(
  asked: Pick<Task, 'job' | 'tenantId'>,
  signal: AbortSignal,
  { resolve, reject }: Task['settle'],
  abandon: (task: Task) => void,
): Task {
  const onAbort = () => {
    abandon(task)
    reject(signal.reason)
  }
  const free = () => signal.removeEventListener('abort', onAbort)
  const task: Task = {
    ...asked,
    settle: {
      resolve(answer) {
        free()
        resolve(answer)
      },
      reject(reason) {
        free()
        reject(reason)
      },
    },
  }
  signal.addEventListener('abort', onAbort, { once: true })
  return task
}

// The other side: this file is also the program of the thread, so that source and build need no second path.
if (!isMainThread && workerData === ROLE) {
  const run = regexJobs()
  parentPort?.on('message', (job: RegexJob) => {
    let answer: RegexAnswer
    try {
      answer = run(job)
    } catch {
      // What was thrown may quote the text.
      answer = { verdict: 'error', reason: 'crashed' }
    }
    parentPort?.postMessage(answer)
  })
}
