// Renders a picture with sharp, several times, and prints what it took.
//
//   node render.mjs '{"file": …, "made": …, "width": …, "format": …, "options": {…}, "times": …}'
//
// Prints, line by line: microseconds of CPU of each run, KiB resident before the first, peak KiB. One thread and no
// cache of earlier work: as on a machine with all its cores busy, for a picture that it has not seen before.

import { readFileSync, writeFileSync } from 'node:fs'
import sharp from 'sharp'

sharp.concurrency(1)
sharp.cache(false)

const { file, made, width, format, options, times } = JSON.parse(process.argv[2])
const resident = (name) => readFileSync('/proc/self/status', 'utf8').match(new RegExp(`${name}:\\s+(\\d+)`))[1]

const bytes = readFileSync(file)
const before = resident('VmRSS')
const cpu = []
let out
for (let time = 0; time < times; time += 1) {
  const start = process.cpuUsage()
  out = await sharp(bytes, { animated: file.endsWith('.gif') })
    .resize({ width })
    .toFormat(format, options)
    .toBuffer()
  const { user, system } = process.cpuUsage(start)
  cpu.push(user + system)
}
writeFileSync(made, out)
console.log([cpu.join(' '), before, resident('VmHWM')].join('\n'))
