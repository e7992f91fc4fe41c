/** Checks a raw value with the format of its setting, and describes the fault. */
import type { SettingValue } from '../schema/formats/formats.ts';
import { describeFound } from './problems.ts';
import type { Setting } from '../schema/setting.ts';
import type { RawValue } from './sources.ts';

type ValueCheck =
  | { readonly ok: true; readonly value: SettingValue }
  | { readonly ok: false; readonly message: string };

/** @param env the variable that the problem already names; undefined when it names none */
export function checkValue(
  { format, sensitive, env }: Pick<Setting, 'format' | 'sensitive'> & { readonly env: string | undefined },
  { value, origin }: RawValue,
): ValueCheck {
  const assertFits: Setting['format'] = format;
  try {
    assertFits(value);
    return { ok: true, value };
  } catch (error) {
    const fault = error instanceof Error ? error.message : String(error);
    // The problem names the setting's own variable; only a file, a flag or a shared variable must be added.
    const [, source] = /^(?:file|environment|flag) (.+)$/s.exec(origin) ?? [];
    const where = source === undefined || source === env ? '' : ` in ${source}`;
    return { ok: false, message: sensitive ? fault : `found ${describeFound(format, value)}${where}; ${fault}` };
  }
}
