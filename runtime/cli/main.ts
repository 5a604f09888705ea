#!/usr/bin/env node
import { inOneArena } from '../../shared/host/one-arena.ts'

// Before anything is loaded, since all of it would be loaded again.
if (process.argv[2] === 'serve') inOneArena()
await import('./commands.ts')
