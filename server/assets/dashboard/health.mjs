// The health of a server in one sentence.

import { preferences } from "./dom.mjs";
import { ago, bytes, count } from "./text.mjs";

const DAY_MS = 86_400_000;
/** Age after which a backup is due. */
const BACKUP_MS = 7 * DAY_MS;
/** How long the reminder of a backup stays dismissed. */
const DISMISSED_MS = 30 * DAY_MS;

/**
 * The state of the server: colour, sentence, and the action that leads to the storage page. The first that applies counts.
 * @param {any} it of `/api/storage` @returns {{kind: "good" | "warn" | "bad", text: string, action?: string, isBackup?: boolean}}
 */
export function healthOf(it) {
  if (it.health === "read_only") return { kind: "bad", text: "Uploads are off: a write failed. Check the server log, then restart." };
  if (it.health === "full") return { kind: "bad", text: "Disk full. Downloads work; uploads are refused.", action: "Free space" };
  if (it.damageCount > 0) return { kind: "bad", text: `${count(it.damageCount, "damaged object")}.`, action: "Review" };
  if (it.disk && it.disk.freeBytes < 2 * it.disk.reserveBytes) return { kind: "warn", text: `Disk almost full: ${bytes(it.disk.freeBytes)} left.`, action: "Free space" };
  const age = it.lastBackup ? Date.now() - Date.parse(it.lastBackup.at) : Infinity;
  if (age > BACKUP_MS && Date.now() - preferences.get("backup-dismissed", 0) > DISMISSED_MS) {
    return { kind: "warn", text: it.lastBackup ? `Last backup ${ago(it.lastBackup.at)}.` : "No backup yet.", action: "How to back up", isBackup: true };
  }
  return { kind: "good", text: "Healthy" };
}
