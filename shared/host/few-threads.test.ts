import { expect, it } from 'vitest'
import { threadsAllowed } from './few-threads.ts'

const LIMITS =
  'Limit                     Soft Limit           Hard Limit           Units\nMax processes             9                    12                   processes\n'

it.each([
  [
    'a container',
    { '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup//pids.max': '8\n', '/proc/self/limits': LIMITS },
    false,
    8,
  ],
  [
    'a unit',
    { '/proc/self/cgroup': '0::/system.slice/a.service\n', '/sys/fs/cgroup/system.slice/a.service/pids.max': '7\n' },
    true,
    7,
  ],
  ['an account', { '/sys/fs/cgroup//pids.max': 'max\n', '/proc/self/limits': LIMITS }, false, 9],
  ['root, whom no limit of an account holds', { '/proc/self/limits': LIMITS }, true, Number.POSITIVE_INFINITY],
  ['a system that says nothing', {}, false, Number.POSITIVE_INFINITY],
])('reads how many threads may be started: %s', (_, files: Record<string, string>, isRoot, most) => {
  expect(threadsAllowed(path => files[path] ?? '', isRoot)).toBe(most)
})
