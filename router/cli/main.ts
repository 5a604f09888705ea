#!/usr/bin/env node
import { beginAnew } from '../../shared/host/begin-anew.ts'
import { shutInspector } from '../../shared/host/shut-inspector.ts'

// Before anything is loaded, since all of it would be loaded again.
if (process.argv[2] === 'serve') beginAnew({ oneWorker: true })
shutInspector()
await import('./run.ts')
