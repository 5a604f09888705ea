import { ApiFault, type PanelApi } from './api.ts'

const AGAIN_MS = 3000

interface Tail {
  api: PanelApi
  /** Something was sealed since the last look. */
  changed: () => Promise<void>
  said: (words: string) => void
}

/** Follows the traces while the page is seen; a line that breaks is connected again. */
export function followTail({ api, changed, said }: Tail) {
  let wanted = true
  let line: AbortController | undefined

  async function listen(signal: AbortSignal): Promise<void> {
    const reader = (await api.tail(signal)).getReader()
    said('● live')
    for (;;) {
      const { done } = await reader.read()
      if (done) return
      await changed()
    }
  }

  async function keep(): Promise<void> {
    if (!wanted || document.hidden || line !== undefined) return
    const own = new AbortController()
    line = own
    try {
      await listen(own.signal)
    } catch (error) {
      // A key is asked for by the page itself, and starts this again.
      if (error instanceof ApiFault && error.status === 401) wanted = false
    }
    if (line === own) line = undefined
    if (own.signal.aborted || !wanted) return
    said('○ the line is broken; connecting again …')
    setTimeout(() => void keep(), AGAIN_MS)
  }

  function stop(): void {
    line?.abort()
    line = undefined
    said('')
  }

  document.addEventListener('visibilitychange', () => (document.hidden ? stop() : void keep()))
  return {
    /** Opens the line, with another key where there was one. */
    start(): void {
      stop()
      wanted = true
      void keep()
    },
    stop(): void {
      wanted = false
      stop()
    },
  }
}
