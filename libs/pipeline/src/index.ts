/** The public face of the package: pure functions from text and values to values. */
export type * from './definition.ts';
export { diagnosticLine, formatDiagnostics } from './diagnostic-text.ts';
export { bindingsOf, evaluate, renderTemplate, truthy } from './evaluate.ts';
export type { ExpressionValue } from './evaluate.ts';
export { Glob, GlobList } from './glob.ts';
export { inputVariable } from './inputs.ts';
export type { InputDefinition, InputType } from './inputs.ts';
export { PIPELINE_LIMITS } from './limits.ts';
export { parseManifest } from './manifest.ts';
export type { ExtensionManifest, ManifestResult, OutputDefinition } from './manifest.ts';
export { parsePipeline } from './parse.ts';
export type { ParseOptions } from './parse.ts';
export { matchesPush } from './push-filter.ts';
export type { Push, PushMatch } from './push-filter.ts';
export { parseRemembered } from './remembered.ts';
export { didYouMean, nearest } from './suggest.ts';
export { EXTENSION_CATEGORIES, extensionIdFault, parseUses, usesOf } from './uses.ts';
export type { ExtensionCategory, UsesFault, UsesReference } from './uses.ts';
