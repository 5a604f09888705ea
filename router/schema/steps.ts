import type { Migration } from '../../shared/sql/migrate.ts'
import { routerBaseline } from './baseline.ts'

/** The router's tables, step by step, from 0.3.0 on. A released step is never edited: add one. */
export const routerSteps: readonly Migration[] = [{ id: 100, name: 'baseline of 0.3.0', sql: routerBaseline }]
