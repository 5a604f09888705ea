export type EarlyFrames = ReturnType<typeof earlyFrames>

/** Frames on their way to a client whose body is not being read yet. */
export function earlyFrames() {
  let to: ((frame: Uint8Array) => void) | undefined
  let waiting: Uint8Array[] = []
  return {
    send(frame: Uint8Array): void {
      if (to) to(frame)
      else waiting.push(frame)
    },
    /** From now on frames go there, those that waited first. */
    attach(sink: (frame: Uint8Array) => void): void {
      for (const frame of waiting) sink(frame)
      waiting = []
      to = sink
    },
  }
}
