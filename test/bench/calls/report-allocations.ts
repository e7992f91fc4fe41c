/** Loaded before a program (`node --import`): on each IPC message it responds with the bytes that V8 has allocated so far. */
import { getHeapStatistics } from 'node:v8';

process.on('message', () => {
  const { total_allocated_bytes: bytes } = getHeapStatistics() as { total_allocated_bytes?: number };
  process.send?.(bytes ?? NaN);
});
process.channel?.unref();
