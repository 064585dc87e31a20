package artifact

import (
	"path/filepath"
	"strings"
)

// MIME is the media type that a file's name stands for. The table is ours,
// so that an artifact has the same type on every host.
func MIME(name string) string {
	ext := strings.ToLower(filepath.Ext(name))
	for _, table := range []func(string) string{textType, mediaType, documentType} {
		if mime := table(ext); mime != "" {
			return mime
		}
	}
	return "application/octet-stream"
}

func textType(ext string) string {
	switch ext {
	case ".csv":
		return "text/csv"
	case ".tsv":
		return "text/tab-separated-values"
	case ".txt", ".log", ".toml", ".ini", ".cfg", ".conf", ".env", ".diff", ".patch",
		".py", ".sh", ".r", ".rb", ".pl", ".lua", ".php", ".go", ".rs", ".c", ".h", ".cc", ".cpp", ".hpp",
		".java", ".kt", ".swift", ".scala", ".sql", ".ts", ".tsx", ".jsx", ".tex", ".bib", ".srt", ".dot", ".gv":
		return "text/plain"
	case ".md":
		return "text/markdown"
	case ".rst":
		return "text/x-rst"
	case ".htm", ".html":
		return "text/html"
	case ".css":
		return "text/css"
	case ".js", ".mjs", ".cjs":
		return "text/javascript"
	case ".ics":
		return "text/calendar"
	case ".vcf":
		return "text/vcard"
	case ".json":
		return "application/json"
	case ".geojson":
		return "application/geo+json"
	case ".jsonl", ".ndjson":
		return "application/x-ndjson"
	case ".ipynb":
		return "application/x-ipynb+json"
	case ".yaml", ".yml":
		return "application/yaml"
	case ".xml":
		return "application/xml"
	}
	return ""
}

func mediaType(ext string) string {
	switch ext {
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".gif":
		return "image/gif"
	case ".webp":
		return "image/webp"
	case ".bmp":
		return "image/bmp"
	case ".tif", ".tiff":
		return "image/tiff"
	case ".ico":
		return "image/vnd.microsoft.icon"
	case ".svg":
		return "image/svg+xml"
	case ".wav":
		return "audio/wav"
	case ".mp3":
		return "audio/mpeg"
	case ".ogg":
		return "audio/ogg"
	case ".flac":
		return "audio/flac"
	case ".mp4":
		return "video/mp4"
	case ".webm":
		return "video/webm"
	}
	return ""
}

func documentType(ext string) string {
	const (
		ooxml = "application/vnd.openxmlformats-officedocument."
		odf   = "application/vnd.oasis.opendocument."
	)
	switch ext {
	case ".pdf":
		return "application/pdf"
	case ".eps", ".ps":
		return "application/postscript"
	case ".rtf":
		return "application/rtf"
	case ".epub":
		return "application/epub+zip"
	case ".xlsx":
		return ooxml + "spreadsheetml.sheet"
	case ".docx":
		return ooxml + "wordprocessingml.document"
	case ".pptx":
		return ooxml + "presentationml.presentation"
	case ".xls":
		return "application/vnd.ms-excel"
	case ".doc":
		return "application/msword"
	case ".ppt":
		return "application/vnd.ms-powerpoint"
	case ".ods":
		return odf + "spreadsheet"
	case ".odt":
		return odf + "text"
	case ".odp":
		return odf + "presentation"
	case ".zip":
		return "application/zip"
	case ".gz", ".tgz":
		return "application/gzip"
	case ".bz2":
		return "application/x-bzip2"
	case ".xz":
		return "application/x-xz"
	case ".7z":
		return "application/x-7z-compressed"
	case ".tar":
		return "application/x-tar"
	case ".parquet":
		return "application/vnd.apache.parquet"
	case ".sqlite", ".sqlite3", ".db":
		return "application/vnd.sqlite3"
	case ".wasm":
		return "application/wasm"
	}
	return ""
}
