//! Components of LFB instances by name: `lpm.IPv4PrefixTable[3]`, `EtherMACIn:2.AdminStatus`,
//! `FEPO.CEID`.

use std::collections::BTreeMap;
use std::sync::Arc;

use forces::association::Place;
use forces::model::{Class, Event, Field, Kind, Target};
use forces::wire::{Data, ResultCode, Select, data};
use forces::{Catalog, DataType, Value};
use progfe::control::program_lfb;
use progfe::program::PREFIX;

/// A component of an instance, as the user named it.
pub struct ComponentName {
    /// The user's text.
    pub text: String,
    /// Its path.
    pub place: Place,
}

impl ComponentName {
    /// Returns a component of the program as a whole.
    pub fn of_program(id: u32) -> ComponentName {
        let place = Place { class: program_lfb::CLASS, instance: 1, path: vec![id] };
        ComponentName { text: format!("Ext-PG-Program.{id}"), place }
    }
}

/// Resolution of names.
pub struct Names {
    /// The classes.
    pub catalog: Catalog,
    /// Instances by their names in the program.
    pub instances: BTreeMap<String, (u32, u32)>,
}

impl Names {
    /// Creates names with classes only.
    pub fn new(catalog: Catalog) -> Names {
        Names { catalog, instances: BTreeMap::new() }
    }

    /// Adds the names of a program's instances.
    pub fn learn(&mut self, rows: &Value) {
        let rows = rows.rows().into_iter().flat_map(|rows| rows.values());
        self.instances.extend(rows.filter_map(|row| {
            let number = |id| row.step(id)?.unsigned().and_then(|it| u32::try_from(it).ok());
            Some((row.step(1)?.text()?.to_owned(), (number(2)?, number(3)?)))
        }));
    }

    fn class(&self, name: &str) -> Option<&Arc<Class>> {
        self.catalog.class(name).or_else(|| self.catalog.class(&format!("{PREFIX}{name}")))
    }

    /// Returns whether a component is named by class and number.
    pub fn is_numbered(&self, text: &str) -> bool {
        let (instance, _) = text.split_once('.').unwrap_or((text, ""));
        let class = instance.split_once(':').map_or(instance, |(class, _)| class);
        self.class(class).is_some()
    }

    /// Resolves a component's name.
    pub fn part(&self, text: &str) -> Result<ComponentName, String> {
        let (instance, path) = text
            .split_once('.')
            .ok_or(format!("{text}: invalid component (hint: use INSTANCE.COMPONENT)"))?;
        let (class, number) = match self.instances.get(instance) {
            Some((class, number)) => {
                let known = self.catalog.class_by_id(*class);
                let unknown =
                    format!("{text}: unknown class {class} (hint: add its library with --library)");
                (known.ok_or(unknown)?, *number)
            }
            None => {
                let (class, number) = instance.split_once(':').unwrap_or((instance, "1"));
                let unknown = || format!("{text}: no instance or class is called {instance}");
                (self.class(class).ok_or_else(unknown)?, number.parse().map_err(|_| unknown())?)
            }
        };
        let path = class.path(path).map_err(|fault| format!("{text}: {fault}"))?;
        let place = Place { class: class.id, instance: number, path };
        Ok(ComponentName { text: text.to_owned(), place })
    }

    /// Returns the type of a component.
    pub fn type_of(&self, part: &ComponentName) -> Result<Arc<DataType>, String> {
        let class = self.catalog.class_by_id(part.place.class);
        match class.map(|class| class.target(&part.place.path)) {
            Some(Ok(Target::Value { data_type, .. })) => Ok(data_type.clone()),
            _ => Err(format!("{} is not a component", part.text)),
        }
    }

    /// Returns the name of an instance for messages.
    fn instance(&self, class: u32, number: u32) -> String {
        let named = self.instances.iter().find(|(_, of)| **of == (class, number));
        match (named, self.catalog.class_by_id(class)) {
            (Some((name, _)), _) => name.clone(),
            (None, Some(class)) => format!("{}:{number}", class.name),
            (None, None) => format!("{class}:{number}"),
        }
    }

    /// Formats the reason for a failed operation as a line.
    pub fn failure(&self, place: &Place, code: ResultCode) -> String {
        if place.path.is_empty() {
            return format!("nothing was changed: {code}");
        }
        let instance = self.instance(place.class, place.instance);
        match self.catalog.class_by_id(place.class) {
            Some(class) => format!("{instance}.{}: {code}", class.show_path(&place.path)),
            None => format!("{instance}: {code}"),
        }
    }

    /// Formats a notification, a line for each event.
    pub fn notification(&self, selects: &[Select]) -> Vec<String> {
        let mut lines = Vec::new();
        for select in selects {
            let Some(class) = self.catalog.class_by_id(select.class) else { continue };
            for operation in &select.operations {
                for path in operation.paths() {
                    let Ok(Target::Event { event, .. }) = class.target(&path.ids) else { continue };
                    let instance = self.instance(select.class, select.instance);
                    let mut line = format!("{instance}.{}", class.show_path(&path.ids));
                    for shown in reported(class, event, &path.ids, &path.data) {
                        line.push(' ');
                        line.push_str(&shown);
                    }
                    lines.push(line);
                }
            }
        }
        lines
    }
}

/// Formats the data of an event.
fn reported(class: &Class, event: &Event, ids: &[u32], said: &Data) -> Vec<String> {
    let mut subscripts = ids.get(2..).unwrap_or_default().to_vec();
    subscripts.resize(event.subscripts().max(subscripts.len()), 0);
    let mut fields = Vec::new();
    for (id, report) in (1..).zip(&event.reports) {
        let path = Event::report_path(report, &subscripts);
        let target = path.as_ref().map(|path| class.target(path));
        let Some(Ok(Target::Value { data_type, .. })) = target else { continue };
        fields.push(Field {
            id,
            name: String::new(),
            synopsis: String::new(),
            optional: true,
            access: None,
            data_type: data_type.clone(),
        });
    }
    let data_type = DataType::unnamed(Kind::Struct(fields.clone()));
    let Some(Ok((Value::Struct(values), _))) = data::read(&data_type, said) else {
        return Vec::new();
    };
    let shown = fields
        .iter()
        .filter_map(|field| Some(field.data_type.show(values.get(field.id)?).to_string()));
    shown.collect()
}
