import { expect, it } from 'vitest'
import { columnsIn, declaredColumns } from '../../shared/sql/testing/columns.ts'
import { runtimeSteps } from './steps.ts'
import * as tables from './tables.ts'

it('declares the tables and columns that the store has', async () => {
  expect(declaredColumns(tables)).toEqual(await columnsIn(runtimeSteps))
})
