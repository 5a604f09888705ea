import Database from 'libsql'

/** Holds a database's only write lock for so many milliseconds, and says when it has it. */
const [path = '', ms = '0'] = process.argv.slice(2)
const db = new Database(path, { timeout: 5000 })
db.exec('begin immediate')
process.stdout.write('held\n')
setTimeout(() => {
  db.exec('rollback')
  db.close()
}, Number(ms))
