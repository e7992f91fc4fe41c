/** Where the JSON Schema of a configuration file lies, for those who write it and those who name it in a file. */
import { locateInPackage } from '../../platform/asset.ts';

/** Below the folder of the package. */
export const JSON_SCHEMA_PATH = 'config/schema.json';

/** For `$schema`, or `# yaml-language-server: $schema=…`: the URL of the installed file; undefined in a one-file binary, which has none. */
export function findJsonSchemaReference(): string | undefined {
  return locateInPackage(JSON_SCHEMA_PATH)?.href;
}
