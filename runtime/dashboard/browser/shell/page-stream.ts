import { root } from './page-api.ts'

interface PageStream {
  /** Of the events, under the folder of the dashboard. */
  path: string
  /** Each connection, before its first event. */
  opened: (stream: EventSource) => void
  /** It was refused, or a proxy answered: it does not come back by itself. */
  refused?: () => void
  wanted?: () => boolean
  /** The page is behind others and needs the stream all the same. */
  kept?: () => boolean
}

/**
 * A stream of events for as long as the page is seen; the browser comes back by itself when the line breaks. A page behind others has
 * none: by HTTP/1.1 a browser has six connections to an address, and the seventh page would wait for one of them.
 */
export function pageStream({ path, opened, refused, wanted, kept }: PageStream) {
  let line: EventSource | undefined
  let isOver = false

  function listen(): void {
    if (line !== undefined || isOver || document.hidden || wanted?.() === false) return
    const stream = new EventSource(`${root}${path}`)
    line = stream
    opened(stream)
    stream.addEventListener('error', () => {
      if (stream.readyState !== EventSource.CLOSED || line !== stream) return
      line = undefined
      refused?.()
    })
  }

  function rest(): void {
    if (!document.hidden || kept?.() === true) return
    line?.close()
    line = undefined
  }

  document.addEventListener('visibilitychange', () => {
    rest()
    listen()
  })
  listen()
  return {
    listen,
    /** Lets go of the stream where the page is not seen and needs it no more. */
    rest,
    /** Nothing comes any more. */
    end(): void {
      isOver = true
      line?.close()
    },
  }
}
