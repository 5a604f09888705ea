#!/usr/bin/env node
import { shutInspector } from '../../shared/host/shut-inspector.ts'

// Before anything else is loaded.
shutInspector()
await import('./commands.ts')
