import { EnvError } from '../../env/read-env.ts'

/** How many processes a setting asks for; `auto` is the service's to say. Refuses what this machine cannot do. */
export function countAsked(name: string, asked: string, auto: () => number): number {
  const count = asked === 'auto' ? auto() : Number(asked)
  if (count > 1 && process.platform === 'win32')
    throw new EnvError(`${name}: several processes need Linux, macOS or BSD: leave it unset on Windows.`)
  return count
}
